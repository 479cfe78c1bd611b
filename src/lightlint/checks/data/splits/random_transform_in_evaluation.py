from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import LoaderMade, SampleMade, Transformed
from lightlint.explore.questions.evaluation import evaluated_loaders
from lightlint.explore.samples import whole_of
from lightlint.facts.objects.classes import DATA_MODULE
from lightlint.facts.project.mentions import has_no_step_for
from lightlint.models.data.pictures.fixed import pictures_of
from lightlint.models.data.pictures.transforms import drawing
from lightlint.values.core import Class, Library
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Site
    from lightlint.values.training import Loader


class RandomTransformInEvaluation(Check):
    def wants_users(self) -> tuple[str, ...]:
        """Where a data module of this file draws: who fits with it tells what it evaluates."""
        modules = (each for each in self.tree.all(cst.ClassDef) if self.classes.is_a(each, DATA_MODULE))
        return ("Trainer",) if any(True for _ in modules) else ()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Data sets of nothing but evaluation whose pictures a random transform changes."""
        for loader, event in evaluated_loaders(entry).values():
            data = whole_of(loader.data)
            if data is None or data.site is None or data.escaped:
                continue
            found = next(_of_library(data) if isinstance(data.cls, Library) else _of_program(entry, loader), None)
            if found is not None and not has_no_step_for(self.facts.project, self.facts.source, event.where.phase):
                message = f"the data that is evaluated goes through `{found.name}`: each evaluation sees other pictures"
                part = _chosen_of(entry, loader, data)
                yield Fault(part or data.site, message, also=(data.site,) if part else ())


def _chosen_of(entry: Entry, loader: Loader, data: Instance) -> Site | None:
    """Where a `Subset` is made of a data set that is right as it is for the other part, which is trained on."""
    part = loader.data
    if not isinstance(part, Instance) or part is data or "indices" not in part.arguments or isinstance(part.cls, Class):
        return None
    sites = {each.site for each, _ in evaluated_loaders(entry).values()}
    others = (event.loader for event in entry.of(LoaderMade) if event.loader.site not in sites)
    return part.site if any(each.data is not part and whole_of(each.data) is data for each in others) else None


def _of_library(data: Instance) -> Iterator[Instance]:
    """The random transforms that a library's data set is made with, unless it is given others afterwards."""
    if not data.attributes.keys() & {"transform", "transforms"}:
        for name, value in data.arguments.items():
            if not name.startswith("target"):
                yield from drawing(value, size=pictures_of(data.name))


def _of_program(entry: Entry, loader: Loader) -> Iterator[Instance]:
    """The random transforms that a worker surely applies to each sample of a data set of the program."""
    for work in entry.of(SampleMade):
        if work.loader.site == loader.site and work.loader.serial == loader.serial:
            moves = [each for each in work.events if isinstance(each, Transformed) and any(drawing(each.transform))]
            for event in [] if _are_views(moves) else moves:
                if all(each.known for each in event.where.conditions):
                    yield from drawing(event.transform)


def _are_views(moves: list[Transformed]) -> bool:
    """Whether one picture goes through random transforms more than once, each time anew: what compares views needs them."""
    given = [each.given[0] for each in moves if each.given]
    return len(set(map(id, given))) < len(given)
