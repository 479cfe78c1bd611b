from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet
from lightlint.explore.questions.queries import inside, is_held
from lightlint.facts.code.bindings import Binding, Kind, dotted_name
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.objects.classes import MODULE, NN_MODULE
from lightlint.facts.objects.kept import sides
from lightlint.facts.project.mentions import is_mentioned_elsewhere, occurs
from lightlint.finding import Tier
from lightlint.text import words_of
from lightlint.values.core import Class, Library, Unknown, Value, is_constant
from lightlint.values.training import Module, Tensor

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_LAYERS = re.compile(
    r"torch\.nn\.(?:parameter\.)?(?:modules\.\w+\.)?(?:Parameter|(?:Lazy)?(?:Linear|Conv\w+)|Bilinear|(?:(?:Sync)?Batch|Layer|Group|RMS)Norm\w*"
    r"|Embedding\w*|LSTM\w*|GRU\w*|RNN\w*|MultiheadAttention|Transformer\w*)"
)
_DROPOUT = re.compile(r"torch\.nn\.(?:modules\.dropout\.)?(?:Alpha|FeatureAlpha)?Dropout\w*")
_NO_LAYERS = (
    cst.Comparison,
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.Lambda,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.BaseComp,
)
_LIBRARIES = ("torch.", "builtins.", "numpy.", "math.", "collections.")
_DEPTH = 3
_HOLDERS = {"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}
_BY_NO_NAME = frozenset(
    ["getattr", "vars", "locals", "__dict__", "_modules", "_parameters", "__getattr__", "children", "named_children"]
)
_IDLE = "it drops nothing"
_UNTRAINED = "its parameters get no gradient, which DDP takes for an error"
_MEANT = re.compile("dummy|fake|device|empty|placeholder|unused|anchor", re.IGNORECASE)
_DDP = re.compile(r"^[^#\n]*(?:\bDistributedDataParallel\(|strategy\s*=\s*['\"]ddp['\"])", re.MULTILINE)
_BASES = {NN_MODULE, MODULE, "builtins.object", "object"}
_COMPUTING = ("forward", "training_step")


class LayerNeverUsed(Check):
    """That nothing has a name is seen in the text: of a library's modules no rehearsal sees all callers."""

    def wants_passes(self) -> bool:
        return bool(self._unread())

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Layers, parameters and dropouts that `__init__` makes, called by no pass, of which nothing in sight has the name."""
        made = [each for path in entry.paths for each in path.of(AttributeSet) if inside(each.where, "__init__")]
        found = [(event, lost) for event in made if (lost := _lost(event.value))]
        unread = self._unread() if found else set()
        for event, lost in found:
            if event.name in unread and not _is_shared(event):
                node = self._class(event.object)
                if lost == _IDLE and node is not None and self._drops_otherwise(node):
                    continue
                if node is not None and not _MEANT.search(event.name) and not self._is_used(node, event.name):
                    idle = not self._waits() if lost == _UNTRAINED else _is_off_by_default(event)
                    tier = Tier.NOTE if idle or self._is_commented_out(event.name) else None
                    yield Fault.at(event, f"nothing uses `self.{event.name}`: {lost}", tier=tier)

    def _drops_otherwise(self, node: cst.ClassDef) -> bool:
        """Whether a class lets a function drop, attention or one that gets its rate: a layer beside that is a leftover."""
        methods = (each for name, each in self.classes.methods(node).items() if name != "__init__")
        calls = [call for each in methods for call in self.tree.within(each, cst.Call)]
        given = [arg.value for call in calls for arg in call.args]
        rates = (each.attr.value for each in given if isinstance(each, cst.Attribute))
        return any(self.names.argument(each, "dropout_p") for each in calls) or any("drop" in each for each in rates)

    def _is_commented_out(self, name: str) -> bool:
        """Whether a comment uses an attribute: who took the line out knows that the layer is idle."""
        return re.search(rf"#[^\n]*\bself\.{re.escape(name)}\b", self.facts.source.text) is not None

    def _unread(self) -> set[str]:
        """The attributes that the file sets to more than constants and parameters, and does not read."""
        if not _BY_NO_NAME.isdisjoint(words_of(self.facts.source.text)):
            return set()
        sets: list[tuple[cst.Assign | cst.AnnAssign, cst.BaseExpression]]
        sets = [(each, each.targets[0].target) for each in self.tree.all(cst.Assign) if len(each.targets) == 1]
        sets += [(each, each.target) for each in self.tree.all(cst.AnnAssign)]
        targets = [(each, target) for each, target in sets if isinstance(target, cst.Attribute)]
        known = {id(target) for _, target in targets}
        read = {each.attr.value for each in self.tree.all(cst.Attribute) if id(each) not in known}
        return {
            target.attr.value
            for each, target in targets
            if target.attr.value not in read and self._may_be_made(each.value)
        }

    def _may_be_made(self, value: cst.BaseExpression | None) -> bool:
        """Whether a value may be made here, as no constant and no argument is."""
        given = self.names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        known = value is None or self.names.constant(value) is not UNKNOWN
        if known or any(each.kind is Kind.PARAMETER for each in given):
            return False
        return value is not None and any(self._may_be_layer(each, 0) for each in sides(value))

    def _may_be_layer(self, value: cst.BaseExpression, depth: int) -> bool:
        """Whether a value may be a layer, or a parameter, that an object does not hold under another name, too."""
        if isinstance(value, cst.Name) and depth < _DEPTH:
            found = self.names.bindings.lookup(value)
            return any(self._is_bound_to_layer(each, depth) for each in found)
        if isinstance(value, (cst.Attribute, cst.Subscript)):
            return dotted_name(_root(value)) != "self"
        if not isinstance(value, cst.Call):
            return not isinstance(value, _NO_LAYERS) and self.names.constant(value) is UNKNOWN
        made = self.names.call(value)
        if made is None:
            return not (self.names.method(value) in ("get", "pop") and self._is_given(_root(value.func)))
        layer = made in _HOLDERS or _LAYERS.match(made) or _DROPOUT.match(made)
        if layer or self.classes.local(made):
            return bool(layer)
        through = any(self._may_be_layer(each.value, depth + 1) for each in value.args) if depth < _DEPTH else True
        return through or not made.startswith(_LIBRARIES)

    def _is_bound_to_layer(self, binding: Binding, depth: int) -> bool:
        if binding.kind in (Kind.PARAMETER, Kind.IMPORT, Kind.FUNCTION, Kind.CLASS):
            return False
        if binding.kind is not Kind.ASSIGN or binding.path or binding.value is None:
            return True
        return any(self._may_be_layer(each, depth + 1) for each in sides(binding.value))

    def _is_given(self, name: cst.BaseExpression) -> bool:
        found = self.names.bindings.lookup(name) if isinstance(name, cst.Name) else []
        return bool(found) and all(each.kind is Kind.PARAMETER for each in found)

    def _class(self, made: Value) -> cst.ClassDef | None:
        """The class of a module whose bases are all in the project, torch or Lightning, and which computes by itself."""
        if not isinstance(made, Module) or not isinstance(made.cls, Class) or made.escaped:
            return None
        cls = made.cls
        nodes = (each for each in self.tree.all(cst.ClassDef) if each.name.value == cls.name)
        node = next(nodes, None) if cls.file == str(self.facts.path) else None
        if node is None or not any(name in self.classes.methods(node) for name in _COMPUTING):
            return None
        return node if self._is_in_project(node) else None

    def _waits(self) -> bool:
        """Whether this file, or one that imports it, trains with DDP, which is not told to look for parameters without gradient."""
        project = self.facts.project
        users = (project.text(each) for each in project.users(self.facts.path, "DistributedDataParallel", "Trainer"))
        wraps = any(map(_DDP.search, (self.facts.source.text, *users)))
        return wraps and not occurs(project, "find_unused_parameters", r"find_unused_parameters")

    def _is_in_project(self, node: cst.ClassDef) -> bool:
        """Whether all classes above are torch's or Lightning's bases, or the project's own."""
        own = [each for each in self.classes.ancestors(node) if each not in _BASES]
        near = self.facts.path.parent
        return all(self.classes.local(each) or self.facts.project.find_class(each, near) for each in own)

    def _is_used(self, node: cst.ClassDef, name: str) -> bool:
        """Whether anything may read an attribute of a class's objects: by its name, or by a text that begins like it."""
        stem = re.escape(name.rstrip("0123456789_"))
        if re.search(rf"['\"{{]\w*{stem}|\b{re.escape(name)}\s*=(?!=)\s*\w", self._texts()) or any(
            self._reads(node, name)
        ):
            return True
        owner = node.name.value
        project, source = self.facts.project, self.facts.source
        if occurs(project, name, rf"(?<!self)\.{re.escape(name)}\b|['\"]{stem}", self.facts.path.absolute()):
            return True
        related = occurs(project, owner, rf"class\s+\w+\s*\([^)]*\b{owner}\b", self.facts.path.absolute())
        related |= any(each not in _BASES and not self.classes.local(each) for each in self.classes.ancestors(node))
        return related and is_mentioned_elsewhere(project, source, name)

    def _texts(self) -> str:
        """The texts of the file, one after the other."""
        return "\n".join(each.value for each in self.tree.all(cst.SimpleString)) + "\n".join(
            "'" + each.value for each in self.tree.all(cst.FormattedStringText)
        )

    def _reads(self, node: cst.ClassDef, name: str) -> Iterator[bool]:
        for each in self.tree.all(cst.Attribute):
            if each.attr.value != name:
                continue
            owner = self.classes.self_class(each.value)
            parent = self.tree.parent(each)
            if isinstance(parent, (cst.AssignTarget, cst.AnnAssign)):
                yield False
            elif owner is node:
                yield True
            else:
                yield owner is None or bool({*self.classes.line(owner)} & {*self.classes.line(node)})


def _root(value: cst.BaseExpression) -> cst.BaseExpression:
    """What a chain of attributes and items begins with."""
    while isinstance(value, (cst.Attribute, cst.Subscript)):
        value = value.value
    return value


def _lost(value: Value) -> str:
    """What a network goes without, or carries along, where a value is never used."""
    if isinstance(value, Tensor):
        return _UNTRAINED if value.parameter and not value.escaped else ""
    if not isinstance(value, Module) or value.calls or any(each.escaped for each in value.modules()):
        return ""
    if not isinstance(value.cls, Library):
        return ""
    if _DROPOUT.fullmatch(value.cls.path):
        return "" if is_constant(value.argument("p", 0), 0, 0.0) else _IDLE
    parts = value.modules() if value.cls.path in _HOLDERS else [value]
    holds = any(isinstance(each.cls, Library) and _LAYERS.fullmatch(each.cls.path) for each in parts)
    return _UNTRAINED if holds else ""


def _is_off_by_default(event: AttributeSet) -> bool:
    """Whether a dropout gets its rate from a parameter that is 0 unless a caller out of sight says otherwise."""
    rate = event.value.argument("p", 0) if isinstance(event.value, Module) else None
    if not isinstance(rate, Unknown):
        return False
    args = event.where.calls[-1].function.node.args
    behind = [*args.posonlyargs, *args.args][-len(args.defaults) :] if args.defaults else []
    given = {each.arg: default for each, default in zip(behind, args.defaults, strict=True)}
    given |= {each.arg: default for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default}
    default = given.get(rate.hint or "")
    return isinstance(default, ast.Constant) and not isinstance(default.value, bool) and default.value == 0


def _is_shared(event: AttributeSet) -> bool:
    """Whether the object has a value, or a part of it, under another name, too."""
    if not isinstance(event.object, Module):
        return True
    others = [value for name, value in event.object.attributes.items() if name != event.name]
    own = event.value.modules() if isinstance(event.value, Module) else [event.value]
    held = {each for other in others if isinstance(other, Module) for each in other.modules()}
    return any(part in held or any(is_held(other, part) for other in others) for part in own)
