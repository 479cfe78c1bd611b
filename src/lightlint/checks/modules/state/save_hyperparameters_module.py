from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import AttributeSet, Called, CalledUnknown, Forward, HyperparametersSaved
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_argument, replace
from lightlint.values.core import Class, Function, Sequence, Value, is_constant, number_of, text_of
from lightlint.values.training import Module, Optimizer, Schedule, tensors_in

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path
    from lightlint.values.core import Site

_STRICT_SINCE = Version("2.6")  # loads weights only, unless it is told otherwise
_TAKERS = ("torch.optim.", "builtins.")  # what takes an optimizer itself, as its schedules do
_SMALL = re.compile(r"loss|criteri|metric|activation|^act", re.IGNORECASE)


class SaveHyperparametersModule(Check):
    def wants_rest(self) -> frozenset[str]:
        """Who makes an object of a class that saves its hyperparameters tells what they are."""
        calls = (each for each in self.tree.all(cst.Call) if self.names.method(each) == "save_hyperparameters")
        around = (self.tree.enclosing_class(each) for each in calls)
        return frozenset(each.name.value for each in around if each is not None)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Modules, optimizers and schedulers among the arguments that `save_hyperparameters` takes."""
        if not self.facts.torch.may_be_at_least(_STRICT_SINCE):
            return
        sites = {event.site for event in entry.of(HyperparametersSaved)}
        for site, kinds in self._kept.items() if sites else ():
            large = [name for name, kind in kinds.items() if kind != "module" or not _SMALL.search(name)]
            of_kind = {kind: [name for name in large if kinds[name] == kind] for kind in map(kinds.__getitem__, large)}
            if large and site in sites:
                what = ", ".join(_said(kind, names) for kind, names in of_kind.items())
                loads = "pickled whole into each checkpoint, which then does not load with `weights_only=True`"
                yield Fault(site, f"{what}: {loads}")

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        kinds = self._kept.get(fault.site, {})
        message = f"leave {'modules' if 'module' in kinds.values() else 'them'} out of the hyperparameters"
        draft = self._draft(node, [*kinds]) if isinstance(node, cst.Call) else None
        return Repair(message, draft, Applicability.UNSAFE, "lightning>=1.3")

    @property
    def _kept(self) -> dict[Site, dict[str, str]]:
        rehearsed = self.facts.rehearsed
        entries = (*rehearsed.entries, *rehearsed.rest(self.wants_rest()))
        return _kept(path for entry in entries for path in entry.paths)

    def _draft(self, call: cst.Call, names: list[str]) -> Draft | None:
        ignore = next(
            (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "ignore"), None
        )
        old = self.names.constant(ignore) if ignore is not None else ()
        if ignore is not None and not isinstance(old, (str, list, tuple)):
            return None
        known = [old] if isinstance(old, str) else list(old) if isinstance(old, (list, tuple)) else []
        display = "[" + ", ".join(f'"{each}"' for each in dict.fromkeys([*known, *names])) + "]"
        return (
            replace(self.code, ignore, display)
            if ignore is not None
            else insert_argument(self.code, call, f"ignore={display}")
        )


def _kept(paths: Iterable[Path]) -> dict[Site, dict[str, str]]:
    """Of each call the arguments that it takes whole, in their order, and what they are: those that no rehearsal shows to be
    something else."""
    found: dict[Site, dict[str, str]] = {}
    spared: dict[Site, set[str]] = {}
    for path in paths:
        for event in path.of(HyperparametersSaved):
            taken = _taken(event)
            for name, value in event.arguments.items():
                kind = _kind(event, name, value) if name in taken else ""
                makes = _makes(path, event, name, value) if kind else None
                if makes or _is_taken_out(path, event, name):
                    spared.setdefault(event.site, set()).add(name)
                elif makes is not None:
                    found.setdefault(event.site, {}).setdefault(name, kind)
    return {
        site: {name: kind for name, kind in kinds.items() if name not in spared.get(site, ())}
        for site, kinds in found.items()
    }


def _taken(event: HyperparametersSaved) -> set[str]:
    """The names of the arguments that a call saves: those it names, else all that it does not leave out; none where it saves
    a dict, or leaves out what is not in sight."""
    given = event.given
    named = _names(Sequence(given.positional)) if given.positional else {*event.arguments}
    ignored = _names(given.keywords.get("ignore"))
    if named is None or ignored is None or not given.exact or not given.keywords.keys() <= {"ignore", "logger"}:
        return set()
    return named - ignored


def _names(value: Value | None) -> set[str] | None:
    """The names in a text, or in a list of texts; None where some may be others."""
    if value is None or is_constant(value, None):
        return set()
    if isinstance(value, Sequence):
        inner = [_names(each) for each in value.items]
        known = [each for each in inner if each is not None]
        return set().union(*known) if len(known) == len(inner) and not value.more else None
    name = text_of(value)
    return {name} if name is not None else None


def _kind(event: HyperparametersSaved, name: str, value: Value) -> str:
    """What an argument surely is: made in sight, or promised by an annotation; not by its name alone."""
    kinds = {Module: "module", Optimizer: "optimizer", Schedule: "scheduler"}
    assumed = getattr(value, "assumed", False) and name not in event.promised
    return "" if assumed else next((kind for cls, kind in kinds.items() if isinstance(value, cls)), "")


def _is_taken_out(path: Path, event: HyperparametersSaved, name: str) -> bool:
    """Whether an entry of the hyperparameters is deleted later, or some are popped."""
    popped = (("of", event.saved.key, "pop") == each.callee.key for each in path.of(CalledUnknown))
    return name not in event.saved.attributes or any(popped)


def _makes(path: Path, event: HyperparametersSaved, name: str, value: Value) -> bool | None:
    """Whether what an annotation promises may be the class or function that makes it, for often that is annotated so; None
    where a path does not come to what tells."""
    if name not in event.promised:
        return False
    if isinstance(value, Module):
        return _is_called_by_name(event.module.cls, name, bare=True) or _is_called_with_sizes(path, event, value)
    key = ("hyperparameter", event.module.number, name)
    calls = [(each.callee, *each.values) for each in path.of(CalledUnknown)]
    calls += [(*each.given.values(),) for each in path.of(Called) if not each.path.startswith(_TAKERS)]
    if any(each is value or each.key == key for call in calls for each in call):
        return True
    configure = event.module.cls.find("configure_optimizers") if isinstance(event.module.cls, Class) else None
    ran = not isinstance(configure, Function) or id(configure.node) in path.machine.called
    return True if _is_called_by_name(event.module.cls, name) else False if ran else None


def _is_called_with_sizes(path: Path, event: HyperparametersSaved, module: Module) -> bool:
    """Whether a module is given sizes and options, or gives what the other keeps: a module itself is called with tensors."""
    kept = [each.value for each in path.of(AttributeSet) if each.object is event.module]
    for call in path.of(Forward):
        if call.module is module:
            options = [*call.given.keywords.values()]
            numbers = all(number_of(each) is not None for each in call.given.positional)
            sizes = numbers and not any(map(tensors_in, options)) and bool(call.given.values())
            if sizes or any(each is call.result for each in kept):
                return True
    return False


def _is_called_by_name(cls: object, name: str, *, bare: bool = False) -> bool:
    """Whether a class calls what has the name of an argument, as it may where it is given one; `bare`: with nothing at all."""
    calls = (each for each in ast.walk(cls.node) if isinstance(each, ast.Call)) if isinstance(cls, Class) else ()
    called = (each.func for each in calls if not bare or not (each.args or each.keywords))
    return any(name in (getattr(each, "id", ""), getattr(each, "attr", "")) for each in called)


def _said(kind: str, names: list[str]) -> str:
    article = "an" if kind == "optimizer" else "a"
    return f"`{names[0]}` is {article} {kind}" if len(names) == 1 else f"{_listed(names)} are {kind}s"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
