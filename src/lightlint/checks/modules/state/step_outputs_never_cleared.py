from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Appended, Called, Emptied, Event, Looped
from lightlint.explore.questions.certain import anyhow
from lightlint.facts.project.mentions import is_changed_outside
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after
from lightlint.values.core import Class, Mapping, Sequence, Value

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_MESSAGE = "this list grows from epoch to epoch: nothing empties it, and the end of each epoch reads all of it"


class StepOutputsNeverCleared(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Lists of a module that steps add tensors to, that nothing empties, and that are put together as a whole."""
        found: dict[Appended, Fault] = {}
        kept = {id(path): set(_kept(path)) for path in entry.paths}
        dropped = {_place(each) for path in entry.paths for each in _of_batches(path) if each not in kept[id(path)]}
        for path in entry.paths:
            joined = [event for event in path.of(Called) if event.path in _JOINING and not event.where.within("batch")]
            whole = [*_read_whole(path)]
            for event in path.of(Appended):
                box = event.container
                if event not in kept[id(path)] or _place(event) in dropped:
                    continue  # something empties it, or what is unknown decides whether it does
                added = [each for each in path.of(Appended) if each.container is box]
                read: list[Event] = [each for each in joined if _takes_all(each, added)]
                read += [each for each, holder in whole if holder is box]
                later = [each for each in read if each.time > event.time]
                epochs = {each.where.turns[0].number for each in later if each.where.turns}
                if len(epochs) > 1 and not any(map(self._is_changed, _names(path, box))):
                    last = max(later, key=lambda each: each.time)
                    found[event] = replace(Fault.at(event, _MESSAGE), fixed_at=last.site)
        yield from (found[event] for event in anyhow(found))

    def _is_changed(self, held: tuple[str, Class]) -> bool:
        name, cls = held
        return is_changed_outside(self.facts.project, name, cls.name, cls.file)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        """Empty the list at the end of the hook that reads it; a dict only if it makes its lists anew."""
        read = self.node_of(fault.fixed_at) if fault.fixed_at is not None else None
        function = self.tree.function(read) if read is not None else None
        added = node.func if isinstance(node, cst.Call) else node
        grown = added.value if isinstance(added, cst.Attribute) else getattr(added, "target", None)
        holder = self._root(grown) if isinstance(grown, cst.BaseExpression) else None
        around = self.tree.enclosing_class(node)
        if holder is None or function is None or around is None:
            return None
        name = holder.attr.value
        made = self.classes.attribute_values(around, name)
        anew = all(isinstance(each, cst.List) or self.names.call(each) == "collections.defaultdict" for each in made)
        draft = self._draft(function, name) if anew else None
        return Repair(f"empty `self.{name}` at the end", draft, Applicability.UNSAFE) if draft is not None else None

    def _root(self, holder: cst.BaseExpression) -> cst.Attribute | None:
        """The `self.x` that holds what is appended to: of `self.x.append(...)`, `self.x["key"].append(...)`."""
        while isinstance(holder, cst.Subscript):
            holder = holder.value
        return holder if isinstance(holder, cst.Attribute) and self.classes.is_self(holder.value) else None

    def _draft(self, function: cst.FunctionDef, name: str) -> Draft | None:
        last = function.body.body[-1] if isinstance(function.body, cst.IndentedBlock) else None
        if self.hooks.of(function) is None or self.tree.own(function.body, cst.Return) or last is None:
            return None
        inner = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        ok = isinstance(inner, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        return insert_after(self.code, inner, f"self.{name}.clear()") if ok else None


def _of_batches(path: Path) -> Iterator[Appended]:
    """What the steps add to lists, batch by batch."""
    for event in path.of(Appended):
        if event.container.kind == "list" and event.where.within("batch") and event.where.phase:
            yield event


def _kept(path: Path) -> Iterator[Appended]:
    """What of it goes into lists that objects still hold at the end, out of which nothing was taken."""
    emptied = {id(each) for event in path.of(Emptied) for each in _lists(event.container)}
    held = {id(each) for o in path.machine.objects for v in o.attributes.values() for each in _lists(v)}
    for event in _of_batches(path):
        if id(event.container) not in emptied and id(event.container) in held and not event.container.escaped:
            yield event


def _place(event: Appended) -> tuple[Site, str]:
    """Where something is added, the same on all paths; a helper adds to another list for another hook."""
    return event.site, event.where.hook


def _read_whole(path: Path) -> Iterator[tuple[Event, Value]]:
    """Where a hook that ends an epoch goes over all of a list, or makes one number of it; what each step does with all that
    came before is an average since the start, and meant to be."""
    for event in path.of(Looped):
        if event.loop.over is not None and event.where.hook.endswith("_end") and "batch" not in event.where.hook:
            yield event, event.loop.over
    for call in path.of(Called):
        reads = call.path in _REDUCING or call.path.startswith(_MEASURING) or call.path.rpartition(".")[2] in _GATHERING
        if reads and not call.where.within("batch"):
            yield from ((call, value) for value in call.given.values())


def _names(path: Path, box: Value) -> set[tuple[str, Class]]:
    """The attributes that hold a container, or a dict with it, each with the class of the program that has it."""
    held = ((each.cls, *pair) for each in path.machine.objects for pair in each.attributes.items())
    found = ((name, cls) for cls, name, value in held if any(each is box for each in _lists(value)))
    return {(name, cls) for name, cls in found if isinstance(cls, Class)}


def _lists(value: Value) -> list[Value]:
    """The containers that a value is or holds."""
    inner = [*value.items.values()] if isinstance(value, Mapping) else []
    return [value, *(each for each in inner if isinstance(each, Sequence))]


_JOINING = (
    "torch.cat",
    "torch.stack",
    "torch.concat",
    "torch.vstack",
    "torch.hstack",
    "torch.tensor",
    "numpy.concatenate",
)


_REDUCING = (
    "builtins.sum",
    *(f"{room}.{name}" for room in ("numpy", "statistics") for name in ("mean", "fmean", "median")),
)
_MEASURING = ("sklearn.metrics.", "torchmetrics.functional.")
_GATHERING = ("all_gather", "all_gather_object", "gather_object", "gather_for_metrics")


def _takes_all(call: Called, added: list[Appended]) -> bool:
    """Whether a call is given something of each entry that a list has got so far, as of tuples the first of each.

    A slice, as of the last few, is no whole list.
    """
    values = [each for each in call.given.values() if each.cut_from is None]
    given = {id(each) for value in values for each in (value.items if isinstance(value, Sequence) else [value])}
    before = [each for each in added if each.time < call.time]
    return bool(before) and all(not given.isdisjoint(map(id, _parts(each.value))) for each in before)


def _parts(value: Value) -> list[Value]:
    """An entry of a list, and what it holds if it is a container itself."""
    inner = value.items if isinstance(value, Sequence) else value.items.values() if isinstance(value, Mapping) else ()
    return [value, *inner]
