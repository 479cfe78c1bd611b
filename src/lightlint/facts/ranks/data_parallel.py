"""Which values are models that DDP wraps, and which are the modules inside of those, whose forward pass DDP does not see."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.ranks.processes import DATA_PARALLEL
from lightlint.facts.steps.steps import Steps
from lightlint.facts.values.values import SAME_OBJECT

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 6
_ACCELERATOR = "accelerate.Accelerator"
# tests that tell a run of several ranks from one of a single process, which has no wrapped model
_SEVERAL = re.compile(r"isinstance|hasattr|distributed|ddp|world|parallel|multi|gpu|is_initialized|wrapped", re.I)
_PROPERTIES = {"builtins.property", "functools.cached_property"}
# modules that hold buffers, and torch's own that do not
_BUFFERED = re.compile(r"Batch_?Norm|^torchvision\.models\.(?!vgg\d+$|alexnet|vit)[a-z]", re.IGNORECASE)
_PLAIN = re.compile(r"torch\.nn\.(?:Linear|Conv\w+|LSTM|GRU|RNN|Embedding|Transformer\w*)$")


class DataParallel:
    """The DDP models of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._taken: dict[tuple[int, str, int], bool] = {}

    def is_wrapped(self, value: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether a value is, on some way that leads to it, what `DistributedDataParallel(...)` gives."""
        if depth > _DEPTH:
            return False
        match value:
            case cst.IfExp():
                arms = (value.body, value.orelse)
                return any(self.is_wrapped(arm, depth + 1) for arm in arms) and not self.is_inner(value, depth + 1)
            case cst.Name() if self._facts.classes.self_class(value) is None:
                return any(self._binds_wrapped(each, value, depth + 1) for each in self._facts.reaching.bindings(value))
            case cst.Attribute():
                return any(self.is_wrapped(each, depth + 1) for each in self._of_self(value))
            case cst.Call():
                return self._makes_wrapped(value, depth)
        return False

    def _binds_wrapped(self, binding: Binding, name: cst.Name, depth: int) -> bool:
        if binding.kind is Kind.PARAMETER:
            key = id(binding.scope), binding.name, depth
            if key not in self._taken:
                self._taken[key] = any(
                    self.is_wrapped(each, depth) for each in self._given(binding) if each is not None
                )
            return self._taken[key]
        if binding.kind is not Kind.ASSIGN:
            return False
        if binding.path:
            return any(
                each is not None and each.name == DATA_PARALLEL for each in self._facts.values.origins_at(name, 0)
            )
        return self.is_wrapped(binding.value, depth)

    def _makes_wrapped(self, call: cst.Call, depth: int) -> bool:
        name = self._names.call(call)
        if name == DATA_PARALLEL:
            return True
        if name == "torch.compile" and call.args:
            return self.is_wrapped(call.args[0].value, depth + 1)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in SAME_OBJECT:
            return self.is_wrapped(call.func.value, depth + 1)
        callee = self._facts.hooks.callee(call)
        returned = self._facts.values.returns(callee) if callee is not None else []
        return any(self.is_wrapped(each, depth + 1) for each in returned)

    def _given(self, binding: Binding) -> list[cst.BaseExpression | None]:
        """What the calls in sight give for a parameter; empty where nothing in this file calls its function."""
        function = binding.scope
        if not isinstance(function, cst.FunctionDef):
            return []
        calls = (
            *self._facts.fact(Steps).calls_of.get(function, ()),
            *self._facts.hooks.constructions.get(function, ()),
        )
        return [self._facts.values.given(function, call, binding.name) for call in dict.fromkeys(calls)]

    def _of_self(self, attribute: cst.Attribute) -> list[cst.BaseExpression]:
        node = self._facts.classes.self_class(attribute.value)
        return self._facts.classes.attribute_values(node, attribute.attr.value) if node is not None else []

    def is_inner(self, value: cst.CSTNode | None, depth: int = 0) -> bool:
        """Whether a value is, wherever several ranks run, the module that a DDP model wraps: `ddp.module`, a name or
        attribute that holds it, what an unwrapping helper gives, or the module that was wrapped under another name."""
        if depth > _DEPTH:
            return False
        match value:
            case cst.IfExp():
                arms = (value.body, value.orelse)
                if any(self.is_wrapped(arm) for arm in arms) and not self._tells_several(value.test):
                    return False
                return any(self.is_inner(arm, depth + 1) for arm in arms)
            case cst.Name() if self._facts.classes.self_class(value) is None:
                return self._names_inner(value, depth)
            case cst.Attribute():
                if value.attr.value == "module" and self.is_wrapped(value.value):
                    return True
                if self._is_property_for_inner(value, depth):
                    return True
                held = self._of_self(value)
                known = any(self.is_inner(each, depth + 1) for each in held)
                return (known and not any(self.is_wrapped(each) for each in held)) or self._is_wrapped_elsewhere(value)
            case cst.Call():
                return self._gives_inner(value, depth)
        return False

    def _names_inner(self, name: cst.Name, depth: int) -> bool:
        found = self._facts.reaching.bindings(name)
        if any(each.kind is Kind.PARAMETER for each in found):
            given = [each for binding in found for each in self._given(binding)]
            inner = len(found) == 1 and bool(given) and all(self.is_inner(each, depth + 1) for each in given)
            return inner or self._is_wrapped_elsewhere(name)
        if any(each.kind is not Kind.ASSIGN or each.path for each in found):
            return False
        if any(self.is_inner(each.value, depth + 1) for each in found):
            return not any(self.is_wrapped(each.value) for each in found)
        return self._is_wrapped_elsewhere(name)

    def _gives_inner(self, call: cst.Call, depth: int) -> bool:
        given = [arg.value for arg in call.args]
        if self._names.call(call) == "builtins.getattr" and len(given) > 1:
            return self._names.constant(given[1]) == "module" and self.is_wrapped(given[0])
        if isinstance(call.func, cst.Attribute):
            if call.func.attr.value in SAME_OBJECT:
                return self.is_inner(call.func.value, depth + 1)
            if call.func.attr.value == "unwrap_model" and given:
                origin = self._facts.values.constructor(call.func.value)
                return origin is not None and origin.name == _ACCELERATOR
        callee = self._facts.hooks.callee(call)
        if callee is not None and isinstance(call.func, cst.Attribute):
            own = self._facts.classes.self_class(call.func.value) is not None
            if own and not given and self._returns_inner(callee, depth):
                return True
        if callee is None or not any(self.is_wrapped(each) for each in given):
            return False
        return any(self.is_inner(each, depth + 1) for each in self._facts.values.returns(callee))

    def _is_property_for_inner(self, attribute: cst.Attribute, depth: int) -> bool:
        """Whether an attribute is a property of its class that gives the module inside of a DDP model."""
        node = self._facts.classes.self_class(attribute.value)
        method = self._facts.classes.method(node, attribute.attr.value) if node is not None else None
        kinds = {self._names.of(each.decorator) for each in method.decorators} if method is not None else set()
        return method is not None and bool(kinds & _PROPERTIES) and self._returns_inner(method, depth)

    def _returns_inner(self, method: cst.FunctionDef, depth: int) -> bool:
        """Whether a method gives the module inside of its object's DDP model in every run of several ranks."""
        if self._facts.hooks.of(method) or depth > _DEPTH:
            return False
        ends = [each for each in self._tree.own(method.body, cst.Return) if each.value is not None]
        inner = [each for each in ends if self.is_inner(each.value, depth + 1)]
        wrapped = any(self.is_wrapped(each.value, depth + 1) for each in ends if each not in inner)
        told = (any(self._tells_several(test) for test, _ in self._facts.conditions(each)) for each in inner)
        return bool(inner) and (not wrapped or all(told))

    def _tells_several(self, test: cst.BaseExpression) -> bool:
        return any(_SEVERAL.search(name.value) for name in self._tree.within(test, cst.Name))

    @cached_property
    def _wraps(self) -> list[tuple[cst.Call, cst.BaseExpression, str]]:
        """The calls that wrap a module, what they are given, and the key they are bound to."""
        found = []
        for call in self._tree.all(cst.Call):
            given = self._names.argument(call, "module", 0) if self._names.call(call) == DATA_PARALLEL else None
            assign = self._tree.parent(call)
            if given is not None and isinstance(assign, cst.Assign) and len(assign.targets) == 1:
                found.append((call, given.value, self._names.key(assign.targets[0].target)))
        return found

    def _is_wrapped_elsewhere(self, value: cst.Name | cst.Attribute) -> bool:
        """Whether a module was wrapped before under another name, and is what this name still stands for."""
        key = self._names.key(value)
        for wrap, given, bound in self._wraps:
            if not key or self._names.key(given) != key or bound in {"", key}:
                continue
            if isinstance(value, cst.Attribute):
                node = self._facts.classes.self_class(value.value)
                if node is not None and node is self._tree.enclosing_class(wrap):
                    return len(self._of_self(value)) == 1
            elif isinstance(given, cst.Name) and self._tree.owner(value) is self._tree.owner(wrap):
                same = self._facts.reaching.bindings(value) == self._facts.reaching.bindings(given)
                if same and self._facts.flow(self._tree.owner(wrap)).reaches(wrap, [value]):
                    return True
        return False

    @cached_property
    def has_buffers(self) -> bool | None:
        """Whether a forward pass of this file's DDP models sends buffers from rank 0 to the others; None where what they
        wrap is out of sight."""
        told: list[bool | None] = []
        for wrap in (each for each in self._tree.all(cst.Call) if self._names.call(each) == DATA_PARALLEL):
            sends = self._names.argument(wrap, "broadcast_buffers")
            given = self._names.argument(wrap, "module", 0)
            if sends is not None and self._names.constant(sends.value) is False:
                told.append(False)
            elif given is not None:
                origins = self._facts.values.unwrapped(given.value)
                told.extend([self.is_buffered(each.name) for each in origins] or [None])
        return True if True in told else None if None in told or not told else False

    def is_buffered(self, name: str, depth: int = 0) -> bool | None:
        """Whether a class of modules holds buffers, in itself or in the modules it is made of; None where one is out of sight."""
        if _BUFFERED.search(name):
            return True
        if _PLAIN.match(name):
            return False
        found = self._facts.of_class(name) if name and depth < _DEPTH else None
        if found is None:
            return None
        facts, node = found
        calls = facts.tree.within(node, cst.Call)
        if any(facts.names.method(each) == "register_buffer" for each in calls):
            return True
        made = {facts.names.call(each) or "" for each in calls}
        if any(map(_BUFFERED.search, made)):
            return True
        parts = {each for each in made if each.rpartition(".")[2][:1].isupper()} | set(facts.classes.ancestors(node))
        others = sorted(each for each in parts - {name} if not each.startswith(("torch.", "builtins.", "math.")))
        told = [facts.fact(DataParallel).is_buffered(each, depth + 1) for each in others]
        return True if True in told else None if None in told else False
