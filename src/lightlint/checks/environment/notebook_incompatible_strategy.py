from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.facts.ranks.world import FABRIC, TRAINER
from lightlint.facts.values.keywords import keywords
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import replace

_SCRIPT_ONLY = re.compile(r"(?:ddp(?:_find_unused_parameters_(?:true|false))?|fsdp\w*|deepspeed\w*)$")
_SPAWNING = re.compile(r"ddp_spawn(?:_find_unused_parameters_(?:true|false))?$")  # refused since 1.7
_CLASSES = {
    f"lightning.{room}strategies.{name}Strategy" for room in ("", "fabric.") for name in ("DDP", "FSDP", "DeepSpeed")
}
_PLACE = re.compile(r"notebook|ipython|jupyter|colab|kaggle|interactive|ps1", re.IGNORECASE)


class NotebookIncompatibleStrategy(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.source.is_notebook or self.names.call(call) not in {TRAINER, FABRIC}:
            return
        given = [each for each in keywords(self.facts, call) if each.name == "strategy"]
        if len(given) != 1 or self._is_one_device(call):
            return
        value, direct = given[0].value, given[0].node in call.args
        made = self.values.constructor(value)
        if made is not None and made.name in _CLASSES:
            start = self.names.argument(made.call, "start_method") if made.call is not None else None
            if start is None and made.call is not None and not self.names.has_star(made.call):
                self._report(value, made.name.rpartition(".")[2], self._repair(value))
            return
        spelled = self.facts.strings.possible(value) or frozenset()
        refused = sorted(filter(self._is_refused, spelled))
        if refused and not any("notebook" in each or "fork" in each for each in spelled):
            sure = len(refused) == len(spelled)
            if sure or not self._asks_for_place(value):
                repair = self._repair(value, Applicability.SAFE if direct else Applicability.UNSAFE)
                self._report(value, refused[0], repair, None if sure else Tier.WARNING)

    def _report(self, node: cst.BaseExpression, strategy: str, repair: Repair | None, tier: Tier | None = None) -> None:
        message = f"strategy `{strategy}` runs a script once per device, and a notebook is none"
        self.report(node, message, tier=tier, repair=repair)

    def _is_refused(self, strategy: str) -> bool:
        new = self.facts.lightning.surely_at_least("1.7")
        return bool(_SCRIPT_ONLY.match(strategy) or (new and _SPAWNING.match(strategy)))

    def _is_one_device(self, call: cst.Call) -> bool:
        given = [each.value for each in keywords(self.facts, call) if each.name == "devices"]
        return any(self.names.constant(each) in (1, "1", [0]) for each in given)

    def _asks_for_place(self, value: cst.BaseExpression) -> bool:
        """Whether a test between strategies may ask if the code runs in a notebook."""
        sources = self._sources(value)
        tests = [each.test for source in sources for each in self.tree.within(source, cst.IfExp)]
        tests += [test for source in sources for test, _ in self.facts.conditions(source)]
        names = [name for test in tests for name in self.tree.within(test, cst.Name, cst.SimpleString)]
        return any(_PLACE.search(name.value) for name in names)

    def _sources(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        if not isinstance(value, cst.Name):
            return [value]
        found = self.names.bindings.lookup(value)
        return [each.value for each in found if each.kind is Kind.ASSIGN and each.value is not None and not each.path]

    def _repair(self, value: cst.BaseExpression, written: Applicability = Applicability.UNSAFE) -> Repair | None:
        """The other strategy in its place, as safe as `written` where that is the value itself."""
        sources = self._sources(value)
        literals = [text for each in sources for text in self.tree.within(each, cst.SimpleString)]
        refused = [text for text in literals if text.evaluated_value == "ddp"]
        if len(refused) != 1:
            return None
        quote = refused[0].quote
        kept = written if refused[0] is value else Applicability.UNSAFE
        draft = replace(self.code, refused[0], f"{quote}ddp_notebook{quote}")
        return Repair("fork the processes from the notebook", draft, kept, "lightning>=1.7")
