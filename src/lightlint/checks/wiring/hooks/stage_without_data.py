from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, Misused
from lightlint.facts.project.mentions import is_changed_elsewhere
from lightlint.values.core import Site
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_HOOKS = {"validate": "val_dataloader", "test": "test_dataloader", "predict": "predict_dataloader"}


class StageWithoutData(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        if not entry.turned or any(path.machine.assumptions for path in entry.paths):
            return
        for run, hook in _HOOKS.items():
            for site in dict.fromkeys(event.site for event in entry.calls.get(f".{run}", ())):
                missing = [_missing(path, site, hook) for path in entry.paths if _runs(path, site)]
                first = next(iter(missing), None)
                if first is None or not all(missing):
                    continue
                if is_changed_elsewhere(self.facts.project, self.facts.source, first.asked):
                    continue
                assert isinstance(first.value, Instance)
                why = f"which `setup` of `{first.value.name}` does not set for `{run}`: it raises"
                yield Fault(site, f"`{hook}` reads `{first.asked}`, {why}", of_call=True, argument="datamodule")


def _runs(path: Path, site: Site) -> bool:
    return any(event.site == site for event in path.of(Called))


def _missing(path: Path, site: Site, hook: str) -> Misused | None:
    """The first attribute that a hook of a data module asks for in a run, and that nothing has set."""
    for event in path.of(Misused):
        run = next((each.site for each in event.where.calls if each.function.name == hook), None)
        if run == site and isinstance(event.value, Instance) and event.value.kind == "data module":
            return event
    return None
