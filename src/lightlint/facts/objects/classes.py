"""Class hierarchies, within a file and across the project's files."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import libcst as cst

from lightlint.facts.code.bindings import Kind, unpacked
from lightlint.facts.code.names import UNKNOWN, Names
from lightlint.facts.code.tree import Tree
from lightlint.facts.objects.optimizers import is_library_optimizer
from lightlint.facts.project.glimpse import INDEXED
from lightlint.facts.project.project import Project
from lightlint.facts.project.summary import ClassSummary

MODULE = "lightning.LightningModule"
DATA_MODULE = "lightning.LightningDataModule"
CALLBACK = "lightning.Callback"
NN_MODULE = "torch.nn.Module"
DATASET = "torch.utils.data.Dataset"
ITERABLE_DATASET = "torch.utils.data.IterableDataset"
OPTIMIZER = "torch.optim.Optimizer"

_NOT_MODULES = {"Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "Module"}
_DATASETS = {"TensorDataset", "ConcatDataset", "Subset", "StackDataset"}
_KNOWN = {
    MODULE: NN_MODULE,
    ITERABLE_DATASET: DATASET,
    "torch.utils.data.ChainDataset": ITERABLE_DATASET,
    "torch.distributed.fsdp.FullyShardedDataParallel": NN_MODULE,
    "torch.jit.ScriptModule": NN_MODULE,
    "torch.fx.GraphModule": NN_MODULE,
    "torch.optim.swa_utils.AveragedModel": NN_MODULE,
    "lightning.demos.boring_classes.BoringModel": MODULE,
    "lightning.demos.boring_classes.DemoModel": MODULE,
    "lightning.demos.boring_classes.BoringDataModule": DATA_MODULE,
}
_HEIGHT = 12
# classes of these are never what a rule asks for
_SETTLED = {"torch", "lightning", *sys.stdlib_module_names, "builtins", "typing_extensions"}


@dataclass(frozen=True, slots=True)
class Heir:
    """A class of another file, and the canonical names of those above it in the order Python looks methods up."""

    summary: ClassSummary
    above: tuple[str, ...]
    path: Path


_Seen = tuple[str, Path]  # a class by its name as files in a folder see it
_Part = tuple[cst.CSTNode, cst.BaseExpression | None, tuple[int, ...]]  # a target, and the value and path it gets


def library_bases(name: str) -> tuple[str, ...]:
    """The bases a class of a library is known to have."""
    room, _, last = name.rpartition(".")
    if name in _KNOWN:
        return (_KNOWN[name],)
    if is_library_optimizer(name):
        return (OPTIMIZER,)
    if not last[:1].isupper():
        return ()
    if room == "torch.utils.data" and last in _DATASETS:
        return (DATASET,)
    if room == "lightning.callbacks":
        return (CALLBACK,)
    if room in {"torch.nn", "torch.nn.parallel"} and last not in _NOT_MODULES:
        return (NN_MODULE,)
    if room == "torch.optim" and name != OPTIMIZER:
        return (OPTIMIZER,)
    return (NN_MODULE,) if name.startswith("torchmetrics.") else ()


class Classes:
    """The classes of one file with all that is known of their bases."""

    def __init__(self, tree: Tree, names: Names, project: Project, path: Path) -> None:
        self._tree = tree
        self._names = names
        self._project = project
        self._path = path
        self._ancestors: dict[cst.ClassDef, tuple[_Seen, ...]] = {}
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._methods: dict[cst.ClassDef, dict[str, cst.FunctionDef]] = {}
        self._bound: dict[cst.ClassDef, dict[str, list[_Part]]] = {}

    @cached_property
    def by_name(self) -> dict[str, cst.ClassDef]:
        """This file's classes by canonical name: the last of several, none if they have different bases."""
        found: dict[str, list[cst.ClassDef]] = defaultdict(list)
        for node in self._tree.all(cst.ClassDef):
            found[self._names.defined(node)].append(node)
        return {
            name: nodes[-1]
            for name, nodes in found.items()
            if len(nodes) == 1 or len(set(map(self.base_names, nodes))) == 1
        }

    def local(self, name: str | None) -> cst.ClassDef | None:
        """The class of this file that a canonical name stands for."""
        return self.by_name.get(name or "")

    def base_names(self, node: cst.ClassDef) -> tuple[str, ...]:
        """Canonical names of the direct bases, empty strings for those that cannot be named."""
        return tuple("" if arg.star else self._base_name(arg.value) for arg in node.bases)

    def _base_name(self, base: cst.BaseExpression) -> str:
        if isinstance(base, cst.Subscript):  # `Base[int]`
            base = base.value
        name = self._names.of(base)
        if name is None and isinstance(base, cst.Name) and not self._names.bindings.lookup(base):
            stars = (f"{module}.{base.value}" for module in self._names.bindings.stars)
            name = next((each for each in stars if self._project.find_class(each, self._path.parent)), None)
        return name or ""

    def ancestors(self, node: cst.ClassDef) -> tuple[str, ...]:
        """Canonical names of every class above, in the order Python looks methods up; an empty string where a base is
        out of sight."""
        return tuple(name for name, _ in self._above(node))

    def line(self, node: cst.ClassDef) -> tuple[cst.ClassDef, ...]:
        """A class and those above it, as far as they stand in this file."""
        return (node, *filter(None, map(self.local, self.ancestors(node))))

    def _above(self, node: cst.ClassDef) -> tuple[_Seen, ...]:
        if node not in self._ancestors:
            self._ancestors[node] = tuple(self._joined(self.base_names(node), self._path.parent, ()))
        return self._ancestors[node]

    def _lineage(self, name: str, near: Path, below: tuple[str, ...]) -> list[_Seen]:
        """A class, and those above it; one that derives from itself ends there."""
        if name in below or len(below) > _HEIGHT:
            return [("", near)]
        above, folder = self._bases(name, near)
        return [(name, near), *self._joined(above, folder, (*below, name))]

    def _joined(self, bases: Sequence[str], near: Path, below: tuple[str, ...]) -> list[_Seen]:
        lines = [self._lineage(base, near, below) for base in bases]
        return _merged([*lines, [line[0] for line in lines]])

    def _bases(self, name: str, near: Path) -> tuple[Sequence[str], Path]:
        """The direct bases of a named class, and the folder from which their names are seen."""
        local = self.local(name)
        if local is not None:
            return self.base_names(local), self._path.parent
        known = library_bases(name)
        found = self._project.find_class(name, near) if name and not known else None
        if found is not None:
            return found[0].bases, found[1].parent
        return known or (() if name.partition(".")[0] in _SETTLED else ("",)) if name else (), near

    def is_a(self, node: cst.ClassDef | None, *names: str) -> bool:
        """Whether a class surely is, or derives from, one of some canonical classes."""
        return node is not None and any(above in names for above in self.ancestors(node))

    def heirs_elsewhere(self, node: cst.ClassDef) -> list[Heir]:
        """The classes that derive from one in files that import from this."""
        return [each for each, above in self._strangers if any(self._is_named(node, *seen) for seen in above)]

    @cached_property
    def _strangers(self) -> list[tuple[Heir, tuple[_Seen, ...]]]:
        """The classes of the files that import from this, with those above them."""
        found: list[tuple[Heir, tuple[_Seen, ...]]] = []
        for path in self._project.users(self._path, *INDEXED):
            for each in self._project.summary(path).classes.values():
                above = tuple(self._joined(each.bases, path.parent, ()))
                found.append((Heir(each, tuple(name for name, _ in above), path), above))
        return found

    def _is_named(self, node: cst.ClassDef, name: str, near: Path) -> bool:
        """Whether a name stands for a class of this file, as files in a folder see it."""
        if name.rpartition(".")[2] != node.name.value:
            return False
        found = self._project.find_class(name, near)
        return found is not None and found[1] == self._path

    def name_is_a(self, name: str | None, *names: str) -> bool:
        """As `is_a`, for a class known by canonical name, of this file, the project or a library."""
        if not name:
            return False
        if name not in self._lineages:
            self._lineages[name] = tuple(each for each, _ in self._lineage(name, self._path.parent, ()))
        return any(each in names for each in self._lineages[name])

    def name_may_be_a(self, name: str, *names: str) -> bool:
        """As `name_is_a`, also where a class above is out of sight."""
        return self.name_is_a(name, *names) or "" in self._lineages.get(name, ("",))

    def complete(self, node: cst.ClassDef) -> bool:
        """Whether every class above is in sight, so that what is not found is not there."""
        return "" not in self.ancestors(node)

    def methods(self, node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        """The methods a class itself defines; of several with one name the last, as Python does."""
        if node not in self._methods:
            own = self._tree.own(node, cst.FunctionDef)
            self._methods[node] = {each.name.value: each for each in own if self._tree.class_of(each) is node}
        return self._methods[node]

    def method(self, node: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """A method as an instance sees it, as far as its definition lies in this file."""
        own = self.methods(node).get(name)
        return own if own is not None else self.inherited(node, name)

    def inherited(self, node: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """The method that `super()` finds, None where a class of another file comes first."""
        for above, near in self._above(node):
            local = self.local(above)
            if local is not None and name in self.methods(local):
                return self.methods(local)[name]
            if local is None and any(name in each.methods for each in self._summary(above, near)):
                return None
        return None

    def has_method(self, node: cst.ClassDef, name: str) -> bool:
        """Whether a class or one of the project's classes above it defines a method."""
        return self.method(node, name) is not None or any(name in each.methods for each in self._summaries(node))

    def _summaries(self, node: cst.ClassDef) -> list[ClassSummary]:
        return [
            each for above, near in self._above(node) if not self.local(above) for each in self._summary(above, near)
        ]

    def _summary(self, name: str, near: Path) -> list[ClassSummary]:
        known = not name or name.startswith(("torch.", "lightning."))
        found = self._project.find_class(name, near) if not known else None
        return [found[0]] if found is not None else []

    def constant(self, node: cst.ClassDef, attribute: str, default: object) -> object:
        """The one constant a class or its bases give `self.attribute`; `default` if none does, `UNKNOWN` if several do."""
        values: list[object] = []
        for each in self.line(node):
            values.extend(self._own_constants(each, attribute))
        if not values:
            values = [each.constants[attribute] for each in self._summaries(node) if attribute in each.constants]
        if self.has_method(node, attribute):
            return UNKNOWN  # a property
        if not values:
            return default if self.complete(node) else UNKNOWN
        return values[0] if all(value == values[0] for value in values) else UNKNOWN

    def _own_constants(self, node: cst.ClassDef, attribute: str) -> list[object]:
        sources = self.attribute_sources(node, attribute)
        return [UNKNOWN if path else self._names.constant(value) for value, path in sources]

    def attribute_values(self, node: cst.ClassDef, attribute: str) -> list[cst.BaseExpression]:
        """Every expression that a class's own code assigns to `self.attribute` or to the class attribute."""
        sources = self.attribute_sources(node, attribute)
        return [value for value, path in sources if value is not None and not path]

    def attribute_sources(
        self, node: cst.ClassDef, attribute: str
    ) -> list[tuple[cst.BaseExpression | None, tuple[int, ...]]]:
        """As `attribute_values`, with what gets a part of a value: `(value, path)`, the value None where it is unknown."""
        return [
            (value, path)
            for leaf, value, path in self._targets(node).get(attribute, ())
            if self._sets(leaf, attribute, node)
        ]

    def _targets(self, node: cst.ClassDef) -> dict[str, list[_Part]]:
        """What is bound anywhere in a class, by the word it ends in, with what it gets: assignments first."""
        if node not in self._bound:
            parts: list[_Part] = []
            for assign in self._tree.within(node, cst.Assign, cst.AnnAssign):
                if assign.value is not None:
                    given = assign.targets if isinstance(assign, cst.Assign) else [assign]
                    parts += [leaf for each in given for leaf in unpacked(each.target, assign.value)]
            others: list[cst.CSTNode] = [each.target for each in self._tree.within(node, cst.For, cst.AugAssign)]
            others += [each.name for each in self._tree.within(node, cst.AsName)]
            parts += [(leaf, None, ()) for target in others for leaf, _, _ in unpacked(target, None)]
            found: dict[str, list[_Part]] = defaultdict(list)
            for part in parts:
                word = part[0].attr if isinstance(part[0], cst.Attribute) else part[0]
                if isinstance(word, cst.Name):
                    found[word.value].append(part)
            self._bound[node] = found
        return self._bound[node]

    def _sets(self, target: cst.CSTNode, attribute: str, node: cst.ClassDef) -> bool:
        if isinstance(target, cst.Name):
            return target.value == attribute and self._tree.scope(target) is node
        return (
            isinstance(target, cst.Attribute)
            and target.attr.value == attribute
            and self.self_class(target.value) is node
        )

    def is_self(self, name: cst.CSTNode) -> bool:
        """Whether a name is the first parameter of the method around it."""
        return self.self_class(name) is not None

    def self_class(self, name: cst.CSTNode) -> cst.ClassDef | None:
        """The class of the method whose first parameter a name is: `self`, or `cls`."""
        if type(name) is not cst.Name:
            return None
        found = self._names.bindings.lookup(name)
        if len(found) != 1 or found[0].kind is not Kind.PARAMETER or not isinstance(found[0].scope, cst.FunctionDef):
            return None
        function = found[0].scope
        first = [*function.params.posonly_params, *function.params.params][:1]
        if not first or first[0] is not found[0].site or self.is_static(function):
            return None
        return self._tree.class_of(function)

    def class_of(self, function: cst.FunctionDef) -> cst.ClassDef | None:
        """The class of which a function is a method."""
        return self._tree.class_of(function)

    def is_static(self, function: cst.FunctionDef) -> bool:
        """Whether a method takes no instance: a `staticmethod`."""
        return any(self._names.of(each.decorator) == "builtins.staticmethod" for each in function.decorators)


def _merged(lines: Sequence[Sequence[_Seen]]) -> list[_Seen]:
    """One order of lookup from those of the bases and the bases' own order, as Python makes it (C3); where Python would
    refuse, the first that is left comes next."""
    merged: list[_Seen] = []
    left = [line for line in lines if line]
    while left:
        later = {name for line in left for name, _ in line[1:]}
        head = next((line[0] for line in left if line[0][0] not in later), left[0][0])
        merged.append(head)
        left = [rest for line in left if (rest := [each for each in line if each[0] != head[0]])]
    return merged
