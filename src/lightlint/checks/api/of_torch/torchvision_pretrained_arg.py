from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.releases.torch_api import vision_models, vision_weights
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import replace_argument
from lightlint.values.core import is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_SINCE = "1.12"  # the torch of torchvision 0.13, which brought `weights`
_SUCCESSORS = {"pretrained": "weights", "pretrained_backbone": "weights_backbone"}


class TorchvisionPretrainedArg(Check):
    asks_rest = vision_models()

    def visit_Call(self, call: cst.Call) -> None:
        function = self.names.of(call.func) or ""
        if vision_weights(function, "pretrained") is None or not self.facts.torch.may_be_at_least(_SINCE):
            return
        for name, successor in _SUCCESSORS.items():
            arg = self._given(call, name)
            if arg is None or is_versioned(self.facts, call):
                continue
            weights = vision_weights(function, name)
            message = f"`{name}` of `{function.rpartition('.')[2]}` is deprecated since torchvision 0.13"
            self.report(arg, message, repair=self._repair(arg, successor, weights))

    def _given(self, call: cst.Call, name: str) -> cst.Arg | None:
        """The argument by keyword, or `pretrained` as a plain bool in the first place, where `weights` stands now."""
        arg = self.names.argument(call, name, 0 if name == "pretrained" else None)
        if arg is None or arg.keyword is not None:
            return arg
        return arg if isinstance(self.names.constant(arg.value), bool) else None

    def _repair(self, arg: cst.Arg, successor: str, weights: str | None) -> Repair | None:
        text = self._text(arg.value, weights)
        if not text:
            return None
        return Repair(f"write `{successor}={text}`", self._draft(arg, successor, text), writes=f"torch>={_SINCE}")

    def _text(self, given: cst.BaseExpression, weights: str | None) -> str:
        """The weights that a truth value stands for, empty where it may be none: torchvision took any value for one."""
        if weights is None or self.code.has_comment(given):
            return ""
        known = self.names.constant(given)
        if isinstance(given, cst.Name) and given.value in {"True", "False", "None"}:
            return f'"{weights}"' if given.value == "True" else "None"
        if isinstance(known, str) or not isinstance(
            given, (cst.Name, cst.Attribute, cst.UnaryOperation, cst.Comparison)
        ):
            return ""
        return f'"{weights}" if {self.code.text_of(given)} else None'

    def _draft(self, arg: cst.Arg, successor: str, text: str) -> Draft | None:
        call = self.tree.parent(arg)
        alone = isinstance(call, cst.Call) and all(each is arg or each.keyword for each in call.args)
        return replace_argument(self.code, arg, f"{successor}={text}") if arg.keyword or alone else None

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if not self.facts.torch.may_be_at_least(_SINCE):
            return
        for name, events in entry.calls.items():
            if not name.startswith("torchvision.") or vision_weights(name, "pretrained") is None:
                continue
            newer = {event.site for event in events if {*_SUCCESSORS.values()} & event.given.keywords.keys()}
            for event in events:  # one that gives `weights` behind a test on the version, and else this, is right
                first = event.given.positional[0] if event.given.positional else None
                old = [each for each in _SUCCESSORS if each in event.given.keywords]
                old += ["pretrained"] if is_constant(first, True, False) else []
                if old and event.site not in newer and not self.is_versioned(event):
                    yield Fault.of(event, f"`{old[0]}` of `{event.name}` is deprecated since torchvision 0.13")
