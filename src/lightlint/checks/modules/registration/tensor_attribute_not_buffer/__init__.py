from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.checks.modules.registration.tensor_attribute_not_buffer.tensor_uses import TensorUses
from lightlint.engine.events import AttributeSet, DevicesMixed
from lightlint.facts.code.bindings import dotted_name
from lightlint.facts.objects.classes import MODULE, NN_MODULE
from lightlint.facts.project.mentions import (
    is_called_elsewhere,
    is_changed_elsewhere,
    is_made,
    moves_by_no_name,
    moves_default_device,
    prepares_samples,
    runs_on_cpu_alone,
)
from lightlint.finding import Applicability, Tier
from lightlint.fixes.repairs.buffers import as_buffer
from lightlint.text import words_of
from lightlint.values.core import Class, Function
from lightlint.values.training import Instance, Tensor

_MAKING = {
    "tensor", "zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "eye", "rand", "randn", "randint", "randperm",
    "from_numpy", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "hann_window", "hamming_window",
}  # fmt: skip
_LIBRARIES = ("torch.", "builtins.", "math.", "numpy.", "collections.", "typing.")
_DEPTH = 3
_ALL_OF_THEM, _MOVES = {"__dict__", "vars", "setattr"}, ("_apply", "to", "cuda")
_KEEPING = {"Parameter", "register_buffer", "register_parameter"}
Source = tuple[cst.BaseExpression | None, tuple[int, ...]]

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value


class TensorAttributeNotBuffer(Check):
    def stands(self) -> bool:
        project, source = self.facts.project, self.facts.source  # else it is made on the GPU at once, or moved
        return not moves_default_device(project, source) and not moves_by_no_name(project, source)

    def wants_passes(self) -> bool:
        """Whether tensors are made where a module may keep them, and an attribute may get one of these."""
        made = [each for each in self.tree.all(cst.Call) if self.names.method(each) in _MAKING]
        made = [each for each in made if self._may_be_kept(each)]
        known = {id(each) for each in made}
        makers = {function.name.value for each in made if (function := self.tree.function(each)) is not None}
        for assign in self.tree.all(cst.Assign):
            if any(id(each) in known for each in self.tree.within(assign.value, cst.Call)):
                makers |= {dotted_name(each.target).rpartition(".")[2] for each in assign.targets}
        return bool(made) and self.facts.kept_values.may_hold(lambda value: self._is_of(value, known, makers, 0))

    def _is_of(self, value: cst.CSTNode, made: set[int], makers: set[str], depth: int) -> bool:
        """Whether a value may be, or come of, what some calls make; `makers` are called what gives, or gets, such things."""
        for call in self.tree.within(value, cst.Call):
            name = self.names.call(call)
            if id(call) in made or self.names.method(call) in makers:
                return True
            if name is not None and not name.startswith(_LIBRARIES) and self.classes.local(name) is None:
                return True
        if any(each.attr.value in makers for each in self.tree.within(value, cst.Attribute)):
            return True
        found = [each for name in self.tree.within(value, cst.Name) for each in self.names.bindings.lookup(name)]
        values = {id(each.value): each.value for each in found if each.value is not None}
        return bool(values) and (
            depth > _DEPTH or any(self._is_of(each, made, makers, depth + 1) for each in values.values())
        )

    def _may_be_kept(self, made: cst.Call) -> bool:
        if (self.names.call(made) or "torch.").partition(".")[0] not in ("torch", "builtins"):
            return False  # of numpy, or of Python's own `random`
        above = self.tree.ancestors(made)
        kept = not any(self.names.method(each) in _KEEPING for each in above if isinstance(each, cst.Call))
        function = self.tree.function(made)
        return kept and (function is None or function.name.value != "forward")

    def visit_Assign(self, assign: cst.Assign) -> None:
        if len(assign.targets) != 1 or not isinstance(assign.targets[0].target, cst.Attribute):
            return
        target, method = assign.targets[0].target, self.tree.function(assign)
        node, name = self.classes.self_class(target.value), target.attr.value
        if node is None or method is None or name == "example_input_array":
            return
        if not self.facts.tensors.is_made_here(assign.value, any_size=True) or self._reads(assign.value, name):
            return
        sized = self.facts.tensors.is_made_here(assign.value)
        mixed = [each for each in self._made_with(node, method) if self._mixes(each, name, sized=sized)]
        if any(map(self._may_move, mixed)) and not is_changed_elsewhere(self.facts.project, self.facts.source, name):
            registers = self.classes.is_a(node, NN_MODULE)
            buffer = Repair("make it a buffer", as_buffer(self.code, assign, name), Applicability.UNSAFE, "torch>=1.6")
            message = f"`self.{name}` stays on the CPU when the module is moved: register it as a buffer"
            tier = Tier.NOTE if all(map(self._stays_on_cpu, mixed)) else None
            self.report(target, message, repair=buffer if registers else None, tier=tier)

    def _may_move(self, module: cst.ClassDef) -> bool:
        """Whether objects of a class are no part of what prepares the samples of a data set, which happens on the CPU."""
        return not prepares_samples(self.facts.project, self.facts.source, module.name.value)

    def _stays_on_cpu(self, module: cst.ClassDef) -> bool:
        """Whether the project makes objects of a class, and nothing in it speaks of a GPU."""
        project, source, name = self.facts.project, self.facts.source, module.name.value
        return is_made(project, source, name) and runs_on_cpu_alone(project, source)

    def _made_with(self, node: cst.ClassDef, method: cst.FunctionDef) -> Iterator[cst.ClassDef]:
        """The modules, a class or what derives from it, whose making runs a method of the class, and nothing else does."""
        for each in self.tree.all(cst.ClassDef):
            init = self.classes.method(each, "__init__") if node in self.classes.line(each) else None
            if init is None or not self.classes.is_a(each, NN_MODULE):
                continue
            if method is init or self._is_part(method, init, each):
                yield each

    def _is_part(self, method: cst.FunctionDef, init: cst.FunctionDef, module: cst.ClassDef) -> bool:
        making = self.hooks.reachable(init)
        if method not in making or method in TensorUses(self.facts).forward(module):
            return False
        if method.name.value == "__init__":
            return True
        calls = [call for call in self.tree.all(cst.Call) if self.names.method(call) == method.name.value]
        made = all(self.tree.function(call) in making for call in calls)
        return made and not is_called_elsewhere(self.facts.project, self.facts.source, method.name.value)

    def _mixes(self, module: cst.ClassDef, name: str, *, sized: bool) -> bool:
        """Whether a forward pass of a module surely mixes the attribute, which nothing moves, with moved tensors."""
        line = self.classes.line(module)
        if not self._is_set_once(line, name) or self._moves_itself(module, line, name):
            return False
        uses = TensorUses(self.facts)
        read = [each for each in uses.in_forward(module, name) if not uses.is_of_one_device(each)]
        return any((sized and uses.is_surely_mixed(use)) or uses.weighs_classes(use) for use in read)

    def _is_set_once(self, line: tuple[cst.ClassDef, ...], name: str) -> bool:
        """Whether one assignment sets an attribute, and what follows in its function only makes it anew from itself."""
        sources = [source for each in line for source in self.classes.attribute_sources(each, name)]
        values = [value for value, path in sources if value is not None and not path]
        again = [each for each in values[1:] if self._reads(each, name)]
        made = all(self.facts.tensors.is_made_here(each, any_size=True) for each in again)
        return len(sources) == len(again) + 1 == len(values) and made and not self._reads(values[0], name)

    def _reads(self, value: cst.BaseExpression, name: str) -> bool:
        words = (each for each in self.tree.within(value, cst.Attribute) if each.attr.value == name)
        return any(self.classes.is_self(each.value) for each in words)

    def _moves_itself(self, module: cst.ClassDef, line: tuple[cst.ClassDef, ...], name: str) -> bool:
        """Whether a class moves tensors in its own way, or asks for the attribute by name."""
        if any(self.classes.has_method(module, each) for each in _MOVES) or self._goes_over_all(line):
            return True
        texts = [self.names.constant(each) for room in line for each in self.tree.within(room, cst.SimpleString)]
        return name in texts

    def _goes_over_all(self, line: tuple[cst.ClassDef, ...]) -> bool:
        """Whether a class goes over its attributes by no name, and so may move them all."""
        return any(not _ALL_OF_THEM.isdisjoint(words_of(self.code.text_of(room))) for room in line)

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Tensors that a module keeps as plain attributes and that meet the GPU's."""
        sets = [event for event in entry.of(AttributeSet) if isinstance(event.value, Tensor)]
        moved = {event.site for event in sets if isinstance(event.value, Tensor) and event.value.device != "cpu"}
        for event in entry.of(DevicesMixed):
            tensor = event.on_cpu
            plain = not (tensor.parameter or tensor.buffer or tensor.escaped or tensor.role == "batch")
            if not plain or not tensor.sure_device or tensor.stored_at is None or tensor.stored_at in moved:
                continue
            made = self._is_made_once(tensor) or self._is_of_setup(entry, tensor)
            node = self.node_of(event.site)
            if node is not None and TensorUses(self.facts).is_of_one_device(node):
                continue
            if made and not self._is_replaced(entry, tensor):
                name = next((each.name for each in entry.of(AttributeSet) if each.site == tensor.stored_at), "")
                message = f"`self.{name}` stays on the CPU when the module is moved: register it as a buffer"
                yield Fault(tensor.stored_at, message)

    def _is_made_once(self, tensor: Tensor) -> bool:
        """Whether a tensor is stored where a module is made, and no method that may run later does so again."""
        node = self.node_of(tensor.stored_at) if tensor.stored_at is not None else None
        function = self.tree.function(node) if node is not None else None
        if function is None or function.name.value == "__init__":
            return function is not None
        calls = (each for each in self.tree.all(cst.Call) if self.names.method(each) == function.name.value)
        callers = [self.tree.function(each) for each in calls]
        made = bool(callers) and all(each is not None and each.name.value == "__init__" for each in callers)
        return made and not is_called_elsewhere(self.facts.project, self.facts.source, function.name.value)

    def _is_of_setup(self, entry: Entry, tensor: Tensor) -> bool:
        """Whether a tensor is stored by a hook that a Trainer calls before it moves the module, and by nothing else."""
        sets = [event for event in entry.of(AttributeSet) if event.site == tensor.stored_at]
        holders = [event.object for event in sets]
        lightning = all(isinstance(each, Instance) and MODULE in each.libraries() for each in holders)
        return bool(sets) and lightning and all(event.where.hook == "setup" for event in sets)

    def _is_replaced(self, entry: Entry, tensor: Tensor) -> bool:
        """Whether the attribute that holds a tensor is given another one elsewhere, as by a pass that finds it on the wrong device."""
        sets = entry.of(AttributeSet)  # a view of what was stored is moved as that is
        kept = [event for event in sets if event.value is tensor or event.site == tensor.stored_at]
        names = {event.name for event in kept}
        if any(self._is_moved(event.object) for event in kept):
            return True
        if any(is_changed_elsewhere(self.facts.project, self.facts.source, name) for name in names):
            return True
        targets = (each.target for each in self.tree.all(cst.AssignTarget))
        whole = (each.value for each in targets if isinstance(each, cst.Attribute) and each.attr.value == "data")
        if any(isinstance(each, cst.Attribute) and each.attr.value in names for each in whole):
            return True
        return any(len(each) > 1 and not self._is_made_anew(each) for name in names for each in self._sources(name))

    def _is_moved(self, module: Value) -> bool:
        """Whether a module's class says itself what moving it moves, or prepares samples, which stays on the CPU."""
        cls = module.cls if isinstance(module, Instance) else None
        if not isinstance(cls, Class):
            return False
        node = next((each for each in self.tree.all(cst.ClassDef) if each.name.value == cls.name), None)
        own = any(isinstance(cls.find(name), Function) for name in _MOVES)
        return own or (node is not None and (self._goes_over_all(self.classes.line(node)) or not self._may_move(node)))

    def _sources(self, name: str) -> Iterator[list[Source]]:
        """What each class gives its attribute of a name, and what functions outside give the objects that they are handed."""
        nodes = self.tree.all(cst.ClassDef)
        yield from ([*self.classes.attribute_sources(node, name)] for node in nodes)
        yield [
            (assign.value, ())
            for assign in self.tree.all(cst.Assign)
            for target in (each.target for each in assign.targets)
            if isinstance(target, cst.Attribute)
            and target.attr.value == name
            and not self.classes.is_self(target.value)
        ]

    def _is_made_anew(self, sources: list[Source]) -> bool:
        return all(
            value is not None and not path and self.facts.tensors.is_made_here(value, any_size=True)
            for value, path in sources
        )
