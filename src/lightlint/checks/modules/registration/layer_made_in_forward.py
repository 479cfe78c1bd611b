from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.choices import plain_key
from lightlint.engine.events import AttributeSet, Called, Event, OptimizerMade, ParametersChanged
from lightlint.engine.frames import Call, Condition
from lightlint.values.core import Class, Site, is_constant
from lightlint.values.training import Module, Tensor

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
_DRAWN = re.compile(r"torch\.nn\.init\.(?:(?:xavier|kaiming|trunc)_\w+|normal_|uniform_|orthogonal_|zeros_)")
_MEANT = re.compile(r"random|(?:^|_)mc(?:$|_|[A-Z])|^MC|monte|bayes|uncertain", re.IGNORECASE)


_NEW_LAYER = "a new layer in each pass: its weights are random every time, and never trained"
_NEW_PARAMETER = "a new parameter in each pass: it has its first value every time, and is never trained"


class LayerMadeInForward(Check):
    asks_passes = True

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Layers and parameters that a forward pass, or a step of Lightning, makes anew each time."""
        for path in entry.paths:
            kept = {id(event.value) for event in path.of(AttributeSet)}
            modules = [each for each in path.machine.objects if isinstance(each, Module) and id(each) not in kept]
            inner = {part for each in modules for part in each.children()}
            made = {each.site: each for each in modules if each not in inner}
            for event in path.of(Called):
                if not _is_in_pass(event) or _is_meant(event) or any(map(_asks_for_one, event.where.conditions)):
                    continue
                module, tested = made.get(event.site), event.where.conditions
                if event.path == _PARAMETER and not tested and _is_new(path, event) and not _trains(path, event):
                    yield Fault(_place(event), _NEW_PARAMETER)
                elif module is None or not event.path.startswith(_NN) or _is_settled(path, module):
                    continue
                elif any(f"{_NN}{each.name}" in _WEIGHTED for each in module.modules()):
                    yield Fault(_place(event), _NEW_LAYER)
                elif event.path in _DROPOUTS and event.where.training is False and not _is_off(event):
                    yield Fault(
                        _place(event), f"a new `{event.name}` is in training mode: `eval()` does not turn it off"
                    )


def _is_in_pass(event: Event) -> bool:
    """Whether a module of the program, or a step of Lightning, runs."""
    module = event.where.module
    own = module is not None and isinstance(module.cls, Class)
    return own or (module is None and event.where.hook in _PASSES)


def _asks_for_one(condition: Condition) -> bool:
    """Whether a test may ask whether there is a layer already, and perhaps finds none."""
    key, negated = plain_key(condition.key)
    several = isinstance(key, tuple) and key[0] in ("and", "or")
    parts = key[1:] if isinstance(key, tuple) and several else [key]
    words = ("is", "test", "has", "in") if several or condition.outcome == negated else ("is", "test")
    return condition.known or any(each is None or (isinstance(each, tuple) and each[0] in words) for each in parts)


def _is_meant(event: Event) -> bool:
    """Whether the class whose pass runs is named for chance."""
    owners = [call.function.owner for call in event.where.calls if call.function.name in _PASSES]
    return bool(owners) and owners[-1] is not None and _MEANT.search(owners[-1].name) is not None


def _place(event: Event) -> Site:
    """The place in the pass: the event's, or that of the call that leads to it."""
    depth = len(_pass(event))
    return event.where.calls[depth].site if 0 < depth < len(event.where.calls) else event.site


def _pass(event: Event) -> tuple[Call, ...]:
    """The calls that led to the pass that runs."""
    calls = event.where.calls
    passes = [number for number, call in enumerate(calls, 1) if call.function.name in _PASSES]
    return calls[: passes[-1]] if passes else ()


def _is_new(path: Path, event: Called) -> bool:
    """Whether a parameter is made of a new tensor."""
    given = event.argument("data", 0)
    fresh = {each.site for each in path.of(Called) if each.path in _FRESH}
    frozen = is_constant(event.argument("requires_grad", 1), False)
    return isinstance(given, Tensor) and given.site in fresh and not frozen


def _trains(path: Path, event: Event) -> bool:
    """Whether the pass takes derivatives or steps by itself, and so may well train what it makes."""
    around = _pass(event)
    return any(_TRAINING.fullmatch(each.name) and _pass(each) == around for each in path.of(Called))


def _is_off(event: Called) -> bool:
    return is_constant(event.argument("p", 0), 0, 0.0)


def _is_settled(path: Path, module: Module) -> bool:
    """Whether a layer computes nothing, is given to an optimizer, or gets weights that are the same in each pass: by hand, by
    other than random numbers, or by a seed."""
    trained = {each for event in path.of(OptimizerMade) for each in event.optimizer.parameters}
    by_hand = any(each.changed_by_hand for each in module.own)
    if not module.calls or by_hand or not trained.isdisjoint(module.parameters()):
        return True
    changes = [event for event in path.of(ParametersChanged) if set(event.parameters) & set(module.own)]
    seeded = any(event.path == "torch.manual_seed" and event.where.module for event in path.of(Called))
    return seeded or not all(_DRAWN.fullmatch(f"torch.nn.{event.name}") for event in changes)
