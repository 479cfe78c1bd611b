"""Class hierarchies, within a file and across the project's files."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.names import UNKNOWN, Names
from lightlint.facts.project import Project
from lightlint.facts.summary import ClassSummary
from lightlint.facts.tree import Tree

MODULE = "lightning.LightningModule"
DATA_MODULE = "lightning.LightningDataModule"
CALLBACK = "lightning.Callback"
NN_MODULE = "torch.nn.Module"
DATASET = "torch.utils.data.Dataset"
ITERABLE_DATASET = "torch.utils.data.IterableDataset"
OPTIMIZER = "torch.optim.Optimizer"

_NOT_MODULES = {"torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter"}
_DATASETS = {"TensorDataset", "ConcatDataset", "ChainDataset", "Subset", "StackDataset"}


def library_bases(name: str) -> tuple[str, ...]:
    """The bases a class of torch, Lightning or torchmetrics is known to have."""
    room, _, last = name.rpartition(".")
    if name == MODULE:
        return (NN_MODULE,)
    if name == ITERABLE_DATASET or (room == "torch.utils.data" and last in _DATASETS):
        return (DATASET,)
    if room == "lightning.callbacks" and last[:1].isupper():
        return (CALLBACK,)
    if room == "torch.nn" and last[:1].isupper() and name != NN_MODULE and name not in _NOT_MODULES:
        return (NN_MODULE,)
    if room in {"torch.optim", "torch.optim.adam"} and last[:1].isupper() and name != OPTIMIZER:
        return (OPTIMIZER,)
    if name.startswith("torchmetrics.") and last[:1].isupper():
        return (NN_MODULE,)
    return ()


class Classes:
    """The classes of one file with all that is known of their bases."""

    def __init__(self, tree: Tree, names: Names, project: Project, path: Path) -> None:
        self._tree = tree
        self._names = names
        self._project = project
        self._path = path
        self._ancestors: dict[cst.ClassDef, tuple[str, ...]] = {}

    @cached_property
    def by_name(self) -> dict[str, cst.ClassDef]:
        """This file's classes by canonical name."""
        return {f"{self._names.module}.{self._names.qualified(node)}": node for node in self._tree.all(cst.ClassDef)}

    def local(self, name: str | None) -> cst.ClassDef | None:
        """The class of this file that a canonical name stands for."""
        return self.by_name.get(name or "")

    def base_names(self, node: cst.ClassDef) -> list[str]:
        """Canonical names of the direct bases, empty strings for those that cannot be named."""
        expressions = [arg.value for arg in node.bases if not arg.star]
        plain = [each.value if isinstance(each, cst.Subscript) else each for each in expressions]
        return [self._names.of(each) or "" for each in plain]

    def ancestors(self, node: cst.ClassDef) -> tuple[str, ...]:
        """Canonical names of every class above, nearest first; an empty string where a base is out of sight."""
        if node not in self._ancestors:
            self._ancestors[node] = ()  # a class that inherits from itself has no bases
            found: list[str] = []
            for name in self.base_names(node):
                found.append(name)
                local = self.local(name)
                found.extend(self.ancestors(local) if local else self._outside(name, self._path.parent))
            self._ancestors[node] = tuple(dict.fromkeys(found))
        return self._ancestors[node]

    def _outside(self, name: str, near: Path, depth: int = 0) -> list[str]:
        known = library_bases(name)
        if known or depth > 12:
            return [each for base in known for each in (base, *self._outside(base, near, depth + 1))]
        found = self._project.find_class(name, near) if name else None
        if found is None:
            return [] if name.startswith(("torch.", "lightning.", "builtins.", "abc.", "typing.")) else [""]
        summary, path = found
        return [each for base in summary.bases for each in (base, *self._outside(base, path.parent, depth + 1))]

    def is_a(self, node: cst.ClassDef | None, *names: str) -> bool:
        """Whether a class surely is, or derives from, one of some canonical classes."""
        return node is not None and any(above in names for above in self.ancestors(node))

    def name_is_a(self, name: str | None, *names: str) -> bool:
        """As `is_a`, for a class known by canonical name, of this file, the project or a library."""
        if not name:
            return False
        local = self.local(name)
        above = self.ancestors(local) if local else self._outside(name, self._path.parent)
        return name in names or any(each in names for each in above)

    def complete(self, node: cst.ClassDef) -> bool:
        """Whether every class above is in sight, so that what is not found is not there."""
        return "" not in self.ancestors(node)

    def methods(self, node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        """The methods a class itself defines; of several with one name the last, as Python does."""
        return {
            each.name.value: each for each in self._tree.own(node, cst.FunctionDef) if self._tree.class_of(each) is node
        }

    def method(self, node: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """A method as an instance sees it, as far as its definition lies in this file."""
        own = self.methods(node).get(name)
        if own is not None:
            return own
        for above in self.ancestors(node):
            local = self.local(above)
            if local is not None and name in self.methods(local):
                return self.methods(local)[name]
        return None

    def has_method(self, node: cst.ClassDef, name: str) -> bool:
        """Whether a class or one of the project's classes above it defines a method."""
        return self.method(node, name) is not None or any(name in each.methods for each in self._summaries(node))

    def _summaries(self, node: cst.ClassDef) -> list[ClassSummary]:
        found = []
        for above in self.ancestors(node):
            if above and self.local(above) is None:
                outside = self._project.find_class(above, self._path.parent)
                if outside is not None:
                    found.append(outside[0])
        return found

    def constant(self, node: cst.ClassDef, attribute: str, default: object) -> object:
        """The one constant a class or its bases give `self.attribute`; `default` if none does, `UNKNOWN` if several do."""
        values: list[object] = []
        for each in (node, *filter(None, map(self.local, self.ancestors(node)))):
            values.extend(self._own_constants(each, attribute))
        if not values:
            values = [each.constants[attribute] for each in self._summaries(node) if attribute in each.constants]
        if not values:
            return default if self.complete(node) else UNKNOWN
        return values[0] if all(value == values[0] for value in values) else UNKNOWN

    def _own_constants(self, node: cst.ClassDef, attribute: str) -> list[object]:
        return [self._names.constant(value) for value in self.attribute_values(node, attribute)]

    def attribute_values(self, node: cst.ClassDef, attribute: str) -> list[cst.BaseExpression]:
        """Every expression that a class's own code assigns to `self.attribute` or to the class attribute."""
        values: list[cst.BaseExpression] = []
        for assign in self._tree.within(node, cst.Assign, cst.AnnAssign):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            if assign.value is not None and any(self._sets(target, attribute, node) for target in targets):
                values.append(assign.value)
        return values

    def _sets(self, target: cst.BaseExpression, attribute: str, node: cst.ClassDef) -> bool:
        if isinstance(target, cst.Name):
            return target.value == attribute and self._tree.scope(target) is node
        return (
            isinstance(target, cst.Attribute)
            and target.attr.value == attribute
            and isinstance(target.value, cst.Name)
            and self.is_self(target.value)
            and self._tree.enclosing_class(target) is node
        )

    def is_self(self, name: cst.CSTNode) -> bool:
        """Whether a name is the first parameter of the method around it."""
        if not isinstance(name, cst.Name):
            return False
        found = self._names.bindings.lookup(name)
        if len(found) != 1 or found[0].kind is not Kind.PARAMETER or not isinstance(found[0].scope, cst.FunctionDef):
            return False
        function = found[0].scope
        first = [*function.params.posonly_params, *function.params.params][:1]
        static = any(self._names.of(each.decorator) == "builtins.staticmethod" for each in function.decorators)
        return bool(first) and first[0] is found[0].site and not static and self._tree.class_of(function) is not None
