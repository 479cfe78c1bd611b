from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.compat import is_versioned
from lightlint.facts.names import UNKNOWN
from lightlint.facts.trainer_values import callback_fault, fault, newer_precision
from lightlint.facts.world import TRAINER
from lightlint.finding import Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import Mapping, written

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CALLBACKS = "lightning.callbacks."


class TrainerInvalidValue(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.of(call.func) or ""
        if not (name == TRAINER or name.startswith(_CALLBACKS)) or is_versioned(self.facts, call):
            return
        for arg in call.args:
            if arg.keyword is not None and name == TRAINER:
                self._judge(call, arg, arg.keyword.value)
            elif arg.keyword is not None:
                self._judge_callback(name.removeprefix(_CALLBACKS), arg, arg.keyword.value)

    def _judge_callback(self, callback: str, arg: cst.Arg, keyword: str) -> None:
        value = self.names.constant(arg.value)
        if value is UNKNOWN or isinstance(value, list):
            return
        found = callback_fault(callback, keyword, value, self.facts.lightning)
        if found:
            self.report(arg, f"`{self.code.text_of(arg)}` {found}")

    def _judge(self, call: cst.Call, arg: cst.Arg, keyword: str) -> None:
        target = self.facts.lightning
        arms = _arms(arg.value)
        for arm in arms:
            given = self._value(arm)
            found = fault(keyword, given, target) if given is not UNKNOWN else None
            if found:
                said = self.code.text_of(arg if arm is arg.value else arm)
                self.report(arg, f"`{said}` {found}")
                return
        value = self._value(arg.value)
        if value is UNKNOWN:
            return
        newer = newer_precision(value, target) if keyword == "precision" else None
        if newer and self.names.argument(call, "plugins") is None:
            literal = isinstance(arg.value, (cst.Integer, cst.SimpleString))
            draft = replace(self.code, arg.value, f'"{newer}"') if literal else None
            message = f'`{self.code.text_of(arg)}` is an old name of `"{newer}"`'
            self.report(arg, message, tier=Tier.NOTE, repair=Repair(f'write "{newer}"', draft, writes="lightning>=2.0"))

    def _value(self, expression: cst.BaseExpression) -> object:
        return dict if isinstance(expression, cst.Dict) else self.names.constant(expression)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name, events in entry.calls.items():
            callback = name.removeprefix(_CALLBACKS) if name.startswith(_CALLBACKS) else ""
            for event in events if callback or name == TRAINER else ():
                for keyword, value in event.given.keywords.items():
                    known = written(value)
                    if (known is None and not isinstance(value, Mapping)) or value.traits:
                        continue
                    given = known.value if known is not None else dict
                    found = (
                        callback_fault(callback, keyword, given, self.facts.lightning)
                        if callback
                        else fault(keyword, given, self.facts.lightning)
                    )
                    if found and not self.is_versioned(event):
                        said = f"{keyword}={{...}}" if given is dict else f"{keyword}={given!r}"
                        yield Fault.of(event, f"`{said}` {found}")


def _arms(expression: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a conditional expression can be; anything else stands for itself."""
    if not isinstance(expression, cst.IfExp):
        return [expression]
    return [*_arms(expression.body), *_arms(expression.orelse)]
