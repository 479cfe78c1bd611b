from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.api.of_lightning.trainer_invalid_value.trainer_values import (
    callback_fault,
    fault,
    newer_precision,
)
from lightlint.facts.ranks.world import TRAINER
from lightlint.finding import Tier
from lightlint.fixes.edits import replace
from lightlint.values.core import Mapping, Sequence, written

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_CALLBACKS = "lightning.callbacks."


class TrainerInvalidValue(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name, events in entry.calls.items():
            callback = name.removeprefix(_CALLBACKS) if name.startswith(_CALLBACKS) else ""
            for event in events if callback or name == TRAINER else ():
                given = {key: known for key, each in event.given.sure().items() if (known := _known(each))}
                for keyword, (value, said) in given.items():
                    found = (
                        callback_fault(callback, keyword, value, self.facts.lightning)
                        if callback
                        else fault(keyword, value, self.facts.lightning)
                    )
                    if found and not self.is_versioned(event):
                        yield Fault.of(event, f"`{keyword}={said}` {found}", argument=keyword)
                if not callback and "precision" in given and "plugins" not in event.given.keywords:
                    yield from self._old_precision(event, *given["precision"])

    def _old_precision(self, event: Called, value: object, said: str) -> Iterator[Fault]:
        newer = newer_precision(value, self.facts.lightning)
        if newer and not self.is_versioned(event):
            message = f'`precision={said}` is an old name of `"{newer}"`'
            yield Fault.of(event, message, tier=Tier.NOTE, argument="precision")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        arg = self.entry_of(node, fault.argument)
        if fault.tier is not Tier.NOTE or not isinstance(arg, (cst.Arg, cst.DictElement)):
            return None
        newer = newer_precision(self.names.constant(arg.value), self.facts.lightning)
        literal = newer and isinstance(arg.value, (cst.Integer, cst.SimpleString))
        draft = replace(self.code, arg.value, f'"{newer}"') if literal else None
        return Repair(f'write "{newer}"', draft, writes="lightning>=2.0")


def _known(value: Value) -> tuple[object, str] | None:
    """What a value is, with its text; a dict stands for its type, and nothing is known of what a test decides."""
    if isinstance(value, Mapping):
        return dict, "{...}"
    if isinstance(value, Sequence) and value.kind == "list":
        items = [written(each) for each in value.items]
        known = [each.value for each in items if each is not None]
        return (known, repr(known)) if len(known) == len(items) and not value.more else None
    constant = written(value)
    if constant is None or value.traits - {"assumed"}:
        return None
    return constant.value, f'"{constant.value}"' if isinstance(constant.value, str) else repr(constant.value)
