from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.ranks.world import TRAINER
from lightlint.facts.releases.api import lightning_api
from lightlint.facts.releases.compat import removal_tier
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_argument, join, remove_argument, replace, replace_argument_name
from lightlint.values.core import Mapping

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site

_CLI = "lightning.cli.LightningCLI"
_BOOLEANS = {"True", "False"}


class TrainerRemovedArg(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Keywords that a Trainer is given, or that a LightningCLI is to give it."""
        for event in entry.calls.get(TRAINER, ()):
            for name in event.given.keywords:
                yield from self._fault(event, name, event.said_at(name))
        for event in entry.calls.get(_CLI, ()):
            defaults = event.argument("trainer_defaults", 4)
            places = defaults.places() if isinstance(defaults, Mapping) else {}
            for key, place in places.items():
                yield from self._fault(event, str(key), place)

    def _fault(self, event: Called, name: str, place: Site) -> Iterator[Fault]:
        target, removed = self.facts.lightning, lightning_api().trainer_removed.get(name)
        tier = removal_tier(target, removed.removed) if removed else None
        if removed and tier and not self.is_versioned(event, "TypeError"):
            since = removed.removed.minor
            message = f"`Trainer` has no argument `{name}` since Lightning {since} (target: {target.version.minor})"
            yield Fault(place, message, tier, of_call=True, argument=name)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        removed = lightning_api().trainer_removed[fault.argument]
        arg = self.entry_of(node, fault.argument)
        if not isinstance(node, cst.Call) or not isinstance(arg, cst.Arg):
            return None
        if self.names.of(node.func) not in {TRAINER, "functools.partial"}:
            return None
        if self.names.argument(node, removed.replacement) is not None:
            return None
        value = self.names.constant(arg.value)
        if fault.argument == "gpus":
            return self._gpus(node, arg, value)
        is_bool = isinstance(arg.value, cst.Name) and arg.value.value in _BOOLEANS
        if removed.autofix == "safe" or (removed.autofix == "safe-if-bool" and is_bool):
            draft: Draft | None = replace_argument_name(self.code, arg, removed.replacement)
            if fault.argument == "reload_dataloaders_every_epoch":
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
