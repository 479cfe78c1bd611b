from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.checks.wiring.trainers.mixed_lightning_imports.packages import Packages
from lightlint.engine.events import FitStarted
from lightlint.facts.lightning.training import ENTRY_POINTS
from lightlint.facts.objects.classes import CALLBACK
from lightlint.facts.ranks.world import TRAINER
from lightlint.finding import Tier
from lightlint.values.core import Class, Library

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


class MixedLightningImports(Check):
    def visit_Call(self, call: cst.Call) -> None:
        packages = Packages(self.facts)
        if self.names.of(call.func) == TRAINER:
            trainer = packages.of_expression(call.func)
            for keyword in ("callbacks", "strategy") if trainer else ():
                for item in self._parts(call, keyword):
                    self._compare(packages, item, trainer)
        elif self.names.method(call) in ENTRY_POINTS:
            run = next((each for each in self.facts.training.runs if each.call is call), None)
            trainer = packages.of_expression(run.trainer.func) if run and run.trainer else None
            model = self.names.argument(call, "model", 0) if run and run.module else None
            loaders = "train_dataloaders" if self.names.method(call) == "fit" else "dataloaders"
            data = self.names.argument(call, "datamodule") or self.names.argument(call, loaders, 1)
            for given in (model, data) if trainer else ():
                if given is not None:
                    self._compare(packages, given.value, trainer)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules that a Trainer of the other package gets, however they come to it."""
        packages = Packages(self.facts)
        for event in entry.of(FitStarted):
            made, module = event.trainer.site, event.module.cls
            trainer = packages.of_file(Path(made[0])) if made is not None else None
            if not isinstance(module, Class) or trainer is None:
                continue
            for cls in module.lineage():
                own = packages.of_file(Path(cls.file)) if isinstance(cls, Class) and _is_lightnings(cls) else None
                if own not in (None, trainer):
                    yield Fault.of(event, _message(module.name, own, trainer), argument="model")

    def _parts(self, call: cst.Call, keyword: str) -> list[cst.BaseExpression]:
        """What a Trainer gets for an argument, item by item."""
        given = self.names.argument(call, keyword)
        value = given.value if given else None
        if isinstance(value, cst.Name):
            bound = self.names.bindings.lookup(value)
            value = bound[0].value if len(bound) == 1 and not bound[0].path and bound[0].value else value
        if isinstance(value, (cst.List, cst.Tuple)):
            return [each.value for each in value.elements]
        return [] if value is None else [value]

    def _compare(self, packages: Packages, item: cst.BaseExpression, trainer: str | None) -> None:
        origin = self.values.constructor(item)
        if origin is None:
            return
        is_lightnings = origin.name.startswith("lightning.") and origin.call is not None
        own = packages.of_expression(origin.call.func) if is_lightnings and origin.call else None
        own = own or packages.of_class(origin.name)
        if own and own != trainer:
            name = origin.name.rpartition(".")[2]
            works = self.classes.name_is_a(origin.name, CALLBACK) and name != "ModelCheckpoint"
            self.report(item, _message(name, own, trainer), tier=Tier.NOTE if works else None)


def _is_lightnings(cls: Class) -> bool:
    """Whether a class derives from one of Lightning's directly."""
    return any(isinstance(base, Library) and base.path.startswith("lightning.") for base in cls.bases)


def _message(name: str, own: str | None, trainer: str | None) -> str:
    return f"`{name}` comes from `{own}`, the Trainer from `{trainer}`"
