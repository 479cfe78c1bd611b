from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.api import RemovedName, lightning_api
from lightlint.facts.compat import is_versioned, removal_tier
from lightlint.facts.keywords import entries, keywords
from lightlint.facts.world import TRAINER
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_argument, join, remove_argument, replace, replace_argument_name

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CLI = "lightning.cli.LightningCLI"
_BOOLEANS = {"True", "False"}


class TrainerRemovedArg(Check):
    def visit_Call(self, call: cst.Call) -> None:
        for arg, name in self._arguments(call):
            removed = lightning_api().trainer_removed.get(name)
            tier = removal_tier(self.facts.lightning, removed.removed) if removed else None
            if removed is None or tier is None or is_versioned(self.facts, call):
                continue
            target = self.facts.lightning.version.minor
            message = f"`Trainer` has no argument `{name}` since Lightning {removed.removed.minor} (target: {target})"
            self.report(arg, message, tier=tier, repair=self._repair(call, arg, name, removed))

    def _arguments(self, call: cst.Call) -> list[tuple[cst.CSTNode, str]]:
        """The keywords a call gives the Trainer: its own and those of `functools.partial(Trainer, ...)`, and the
        defaults that a LightningCLI gives it."""
        callee = self.names.of(call.func)
        if callee == "functools.partial" and call.args:
            callee = self.names.of(call.args[0].value)
        if callee is not None and self.classes.name_is_a(callee, _CLI):
            given = self.names.argument(call, "trainer_defaults")
            travelling = entries(self.facts, given.value, call) if given is not None else ()
            return [(each.node, each.name) for each in travelling]
        if callee != TRAINER:
            return []
        return [(keyword.node, keyword.name) for keyword in keywords(self.facts, call)]

    def _repair(self, call: cst.Call, arg: cst.CSTNode, name: str, removed: RemovedName) -> Repair | None:
        if not isinstance(arg, cst.Arg):
            return None
        if any(each.keyword is not None and each.keyword.value == removed.replacement for each in call.args):
            return None
        value = self.names.constant(arg.value)
        if name == "gpus":
            return self._gpus(call, arg, value)
        is_bool = isinstance(arg.value, cst.Name) and arg.value.value in _BOOLEANS
        if removed.autofix == "safe" or (removed.autofix == "safe-if-bool" and is_bool):
            draft: Draft | None = replace_argument_name(self.code, arg, removed.replacement)
            if name == "reload_dataloaders_every_epoch":
                draft = join(draft, replace(self.code, arg.value, str(int(bool(value)))))
            added = lightning_api().trainer_current.get(removed.replacement)
            return Repair(f"rename to `{removed.replacement}`", draft, writes=f"lightning>={added}" if added else "")
        return None

    def _gpus(self, call: cst.Call, arg: cst.Arg, value: object) -> Repair | None:
        """`gpus=n` to `accelerator="gpu", devices=n`; 0 and None meant the CPU."""
        if any(each.keyword is not None and each.keyword.value in {"accelerator", "devices"} for each in call.args):
            return None
        if value is None or value == 0:
            return Repair(
                "drop `gpus`, which meant no GPU", remove_argument(self.code, call, arg), Applicability.UNSAFE
            )
        if isinstance(value, bool) or not isinstance(value, (int, list)):
            return None
        draft = join(
            replace_argument_name(self.code, arg, "devices"), insert_argument(self.code, call, 'accelerator="gpu"')
        )
        return Repair('replace by `accelerator="gpu", devices=...`', draft, Applicability.UNSAFE, "lightning>=1.5")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        target = self.facts.lightning
        for event in entry.calls.get(TRAINER, ()):
            for name in event.given.keywords:
                removed = lightning_api().trainer_removed.get(name)
                tier = removal_tier(target, removed.removed) if removed else None
                if removed and tier and not self.is_versioned(event):
                    since = removed.removed.minor
                    message = (
                        f"`Trainer` has no argument `{name}` since Lightning {since} (target: {target.version.minor})"
                    )
                    yield Fault.of(event, message, tier=tier)
