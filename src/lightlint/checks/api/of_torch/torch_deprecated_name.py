from __future__ import annotations

from dataclasses import replace as replace_fields

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.project.mentions import is_mentioned
from lightlint.facts.releases.compat import removal_tier
from lightlint.facts.releases.old_uses import Used, old_uses
from lightlint.facts.releases.torch_api import OldName
from lightlint.finding import Applicability
from lightlint.fixes.draft import Draft
from lightlint.fixes.drafts.renames import rename_to
from lightlint.fixes.edits import replace

_STAYING = {"torch.norm"}  # deprecated since 1.9 in the documentation alone, without a warning or a date: nothing to do


class TorchDeprecatedName(Check):
    def visit_ImportFrom(self, statement: cst.ImportFrom) -> None:
        self._judge(statement)

    def visit_Attribute(self, attribute: cst.Attribute) -> None:
        self._judge(attribute)

    def _judge(self, node: cst.ImportFrom | cst.Attribute) -> None:
        target = self.facts.torch
        for place, entry in old_uses(self.facts, node):
            since = entry.torch_deprecated
            if entry.name in _STAYING or since is None or entry.deprecated is None or not target.may_be_at_least(since):
                continue
            if entry.torch_removed and removal_tier(target, entry.torch_removed):
                continue
            instead = f" in favour of `{entry.replacement}`" if entry.replacement else ""
            message = f"`{entry.name}` is deprecated since {entry.package} {entry.deprecated.minor}{instead}"
            repair = self._repair(place, entry)
            if repair is not None:
                repair = replace_fields(repair, writes=f"torch>={since}")  # what is told to use was there by then
            self.report(place, message, repair=repair)

    def _repair(self, place: Used, entry: OldName) -> Repair | None:
        if any(is_mentioned(self.facts.project, self.facts.source, word) for word in entry.partners):
            return None
        if entry.fix and entry.replacement:
            draft = rename_to(self.facts, place, entry.name, entry.replacement)
            return Repair(f"write `{entry.replacement}`", draft, Applicability(entry.fix))
        call = self.tree.parent(place)
        if not isinstance(call, cst.Call) or call.func is not place or not isinstance(place, cst.Attribute):
            return None
        if any(arg.star for arg in call.args):
            return None
        rest = entry.name.rpartition(".")[2]
        if rest in {"qr", "cholesky"} and len(call.args) == 1 and call.args[0].keyword is None:
            return Repair(f"write `{entry.replacement}`", rename_to(self.facts, place, entry.name, entry.replacement))
        if rest == "chain_matmul":
            return Repair("write `torch.linalg.multi_dot` of a list", self._multi_dot(call, place))
        return self._arange(call, place) if rest == "range" else None

    def _multi_dot(self, call: cst.Call, func: cst.Attribute) -> Draft | None:
        """A chain of one is no product that `multi_dot` knows."""
        if len(call.args) < 2 or any(arg.keyword for arg in call.args):
            return None
        root = self.code.text_of(func.value)
        matrices = ", ".join(self.code.text_of(arg.value) for arg in call.args)
        return replace(self.code, call, f"{root}.linalg.multi_dot([{matrices}])")

    def _arange(self, call: cst.Call, func: cst.Attribute) -> Repair | None:
        """`range(0, 9)` holds ten floats: the same from `arange`, where all its numbers are whole and it counts up."""
        plain = [arg for arg in call.args if arg.keyword is None]
        keywords = {arg.keyword.value: arg for arg in call.args if arg.keyword}
        values = [self.names.constant(arg.value) for arg in plain]
        numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
        if len(numbers) != len(values) or len(numbers) not in {2, 3} or keywords.keys() - {"dtype", "device"}:
            return None
        if numbers[0] > numbers[1] or (len(numbers) == 3 and numbers[2] <= 0):
            return None
        root = self.code.text_of(func.value)
        texts = [self.code.text_of(arg.value) for arg in plain]
        texts[1] = str(numbers[1] + 1) if isinstance(plain[1].value, cst.Integer) else f"{texts[1]} + 1"
        texts += [f"{name}={self.code.text_of(arg.value)}" for name, arg in keywords.items()]
        if "dtype" not in keywords:
            texts.append(f"dtype={root}.get_default_dtype()")
        return Repair("write `torch.arange`", replace(self.code, call, f"{root}.arange({', '.join(texts)})"))
