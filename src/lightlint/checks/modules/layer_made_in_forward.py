from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import AttributeSet, Called, ParametersChanged
from lightlint.facts.classes import NN_MODULE
from lightlint.values.core import Class, is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry, Path

_NN = "torch.nn."
_WEIGHTED = {
    _NN + name
    for name in (
        "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
        "Embedding", "EmbeddingBag", "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention",
        "Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer",
    )
}  # fmt: skip
_DROPOUTS = {_NN + name for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")}
_PARAMETER = _NN + "Parameter"
_FRESH = {
    f"torch.{name}" for name in ("zeros", "ones", "rand", "randn", "empty", "full", "tensor", "Tensor", "FloatTensor")
}
# what takes derivatives or steps by itself in a pass may well train what it makes there
_TRAINING = re.compile(r"backward|step|grad|zero_grad")
_PASSES = {"forward", "training_step", "validation_step", "test_step", "predict_step"}
_MOVES = {"to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type"}  # what gives the same module back
_DRAWN = re.compile(r"torch\.nn\.init\.(?:(?:xavier|kaiming|trunc)_\w+|normal_|uniform_|orthogonal_|zeros_)")
_MEANT = re.compile(r"random|(?:^|_)mc(?:$|_|[A-Z])|^MC|monte|bayes|uncertain", re.IGNORECASE)


class LayerMadeInForward(Check):
    asks_passes = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        owner = self.tree.class_of(node)
        if node.name.value not in _PASSES or owner is None or not self.classes.is_a(owner, NN_MODULE):
            return
        if _MEANT.search(owner.name.value):
            return
        for call in self.tree.own(node.body, cst.Call):
            name = self.names.call(call)
            if self._is_layer(call, name) and self._becomes(call, node, "called") and not self._is_seeded(node):
                self.report(call, "a new layer in each pass: its weights are random every time, and never trained")
            elif name in _DROPOUTS and self._drops(call) and self._becomes(call, node, "called"):
                self.report(
                    call, f"a new `{(name or '').removeprefix(_NN)}` is in training mode: `eval()` does not turn it off"
                )
            elif name == _PARAMETER and self._is_new(call) and not self._trains(node):
                self.report(
                    call, "a new parameter in each pass: it has its first value every time, and is never trained"
                )

    def _is_new(self, call: cst.Call) -> bool:
        """Whether a parameter to train is made of a new tensor whenever the pass runs, not where it is missing."""
        given = call.args[0].value if len(call.args) == 1 else None
        return self.names.call(given) in _FRESH and not self.facts.conditions(call)

    def _trains(self, function: cst.FunctionDef) -> bool:
        """Whether a pass takes derivatives or steps."""
        return any(_TRAINING.fullmatch(self.names.method(call)) for call in self.tree.own(function.body, cst.Call))

    def _is_layer(self, call: cst.Call, name: str | None) -> bool:
        """Whether a call makes a layer with weights: by its class, in a sequence, or by a function of the file."""
        if name == _NN + "Sequential":
            return any(isinstance(arg.value, cst.Call) and self.names.call(arg.value) in _WEIGHTED for arg in call.args)
        return name in _WEIGHTED or self._is_made_by(self.facts.steps.callee(call))

    def _is_made_by(self, function: cst.FunctionDef | None) -> bool:
        """Whether all that a function does is to make a layer, first of all, move it, draw its weights and return it."""
        if function is None:
            return False
        made = [each for each in self.tree.own(function.body, cst.Call) if self.names.call(each) in _WEIGHTED]
        returns = self.tree.own(function.body, cst.Return)
        lines = function.body.body if isinstance(function.body, cst.IndentedBlock) else ()
        first = bool(lines) and bool(made) and self.tree.contains(lines[0], made[0])
        return first and len(made) == len(returns) == 1 and self._becomes(made[0], function, "returned")

    def _becomes(self, call: cst.Call, function: cst.FunctionDef, wanted: str) -> bool:
        """Whether what a call gives is called or returned in a function, as is wanted, and at most moved or initialised else."""
        made: cst.CSTNode = call
        while (moved := self._moved(made)) is not None:
            made = moved
        if self._use(made) == wanted:
            return True
        parent = self.tree.parent(made)
        target = parent.targets[0].target if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
        if not isinstance(target, cst.Name):
            return False
        same = [
            each for each in self.tree.within(function, cst.Name) if each.value == target.value and each is not target
        ]
        uses = {self._use(each) for each in same if not self.names.is_word(each)}
        return wanted in uses and uses <= {wanted, "moved", "initialised"}

    def _use(self, node: cst.CSTNode) -> str:
        """What becomes of a module in one place; the name that it has again once moved counts as moved."""
        parent = self.tree.parent(node)
        if isinstance(parent, cst.Call) and parent.func is node:
            return "called"
        if isinstance(parent, cst.Return):
            return "returned"
        if isinstance(parent, cst.AssignTarget):
            return "moved" if self._is_moved_again(parent) else "kept"
        if self._moved(node) is not None:
            return "moved"
        given = self.tree.parent(parent) if isinstance(parent, cst.Attribute) else None
        call = self.tree.parent(given) if isinstance(given, cst.Arg) else None
        return "initialised" if _DRAWN.fullmatch(self.names.call(call) or "") else "kept"

    def _is_moved_again(self, target: cst.AssignTarget) -> bool:
        """Whether an assignment is `x = x.to(device)`."""
        assign = self.tree.parent(target)
        value = assign.value if isinstance(assign, cst.Assign) else None
        func = value.func if isinstance(value, cst.Call) else None
        if not isinstance(func, cst.Attribute) or func.attr.value not in _MOVES:
            return False
        return self.names.key(func.value) == self.names.key(target.target)

    def _moved(self, node: cst.CSTNode) -> cst.Call | None:
        """The call `x.to(device)` of a node `x`."""
        attribute = self.tree.parent(node)
        call = self.tree.parent(attribute) if attribute is not None else None
        is_move = isinstance(attribute, cst.Attribute) and attribute.value is node and attribute.attr.value in _MOVES
        return call if is_move and isinstance(call, cst.Call) and call.func is attribute else None

    def _drops(self, call: cst.Call) -> bool:
        """Whether a dropout layer drops in each mode."""
        if any(name.value == "training" for name in self.tree.within(call, cst.Name)):
            return False
        given = self.names.argument(call, "p", 0)
        tests = [name.value for test, _ in self.facts.conditions(call) for name in self.tree.within(test, cst.Name)]
        off = given is not None and self.names.constant(given.value) in (0, 0.0)
        return not off and not any(re.search("train|eval", each) for each in tests)

    def _is_seeded(self, function: cst.FunctionDef) -> bool:
        return any(self.names.method(call) == "manual_seed" for call in self.tree.own(function.body, cst.Call))

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Layers that a forward pass makes anew each time."""
        for path in entry.paths:
            kept = {id(event.value) for event in path.of(AttributeSet)}
            made = {
                each.site: each for each in path.machine.objects if isinstance(each, Module) and id(each) not in kept
            }
            for event in path.of(Called):
                module, around = made.get(event.site), event.where.module
                if module is None or around is None or not module.calls or event.where.conditions:
                    continue
                if _MEANT.search(around.name) or not isinstance(around.cls, Class) or _is_filled(path, module):
                    continue
                if event.path in _WEIGHTED:
                    yield Fault.at(
                        event, "a new layer in each pass: its weights are random every time, and never trained"
                    )
                elif (
                    event.path in _DROPOUTS
                    and event.where.training is False
                    and not is_constant(event.argument("p", 0), 0, 0.0)
                ):
                    yield Fault.at(event, f"a new `{event.name}` is in training mode: `eval()` does not turn it off")


def _is_filled(path: Path, module: Module) -> bool:
    """Whether a layer gets weights that are the same in each pass: by hand, by other than random numbers, or by a seed."""
    if any(each.changed_by_hand for each in module.own):
        return True
    changes = [event for event in path.of(ParametersChanged) if set(event.parameters) & set(module.own)]
    seeded = any(event.path == "torch.manual_seed" and event.where.module for event in path.of(Called))
    return seeded or not all(_DRAWN.fullmatch(f"torch.nn.{event.name}") for event in changes)
