"""What a module makes of its inputs."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call, call_unknown
from lightlint.engine.events import (
    Forward,
    Normalised,
    PartPassed,
    RegionsCompared,
)
from lightlint.engine.events.huggingface import Labelled, TokensRead
from lightlint.engine.machine import Machine
from lightlint.models import tensors
from lightlint.models.names.huggingface import FORWARD_KEYWORDS
from lightlint.models.names.kinds import REGION_LOSSES, REGION_NETS
from lightlint.models.names.metrics import direction
from lightlint.models.names.tables import ACTIVATIONS, BY_ROW, LOSSES
from lightlint.models.numbers import angles, halves
from lightlint.models.sequences import masks, pooled
from lightlint.models.tensors import axes, forms
from lightlint.models.tensors.losses import leaves_out
from lightlint.models.training import passes
from lightlint.models.training.modules.making import by_mode
from lightlint.values.core import (
    ASSUMED,
    Class,
    Constant,
    Function,
    Library,
    Sequence,
    Unknown,
    Value,
    is_constant,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Module, Tensor, tensors_in

_TELLING = re.compile(r"_*(?:show|plot|draw|log|print|visuali[sz]e|write|dump|save|export)(?:_|$)")
"""What parts of a module out of sight are called that are no modules but methods which tell or keep what it gave."""

_ASKING = re.compile(r"_*(?:get|num|is|has|count)_")
"""What those are called that tell of its weights, their gradients, its state or its settings."""

_ANSWERING = re.compile(
    r"_*get_(?:\w*_)?(?:features?|embed\w*|logits?|loss(?:es)?|outputs?|scores?|hidden\w*|states?|representations?|prob\w*"
    r"|latents?|codes?|actions?|values?|rewards?|pred\w*|vectors?|tokens?|dist\w*)"
)
"""Those among them that a pass answers where they are handed something."""

_MEASURING = re.compile(r"(?:^|_)(?:metrics?|measures?|correct)(?:_|$)")
"""What those are called that tell how good its answers are, as do those with the name of a metric that is to grow."""

_PREPARING = re.compile(
    r"_*(?:set|prepare|update|init|initiali[sz]e|build|make|create|resize|tie|untie|add|remove|register|load|reset|adjust|expand"
    r"|reorder|validate|check|configure|convert|push|merge|unmerge|enable|disable|activate|deactivate|freeze|unfreeze|setup)(?:_|$)"
)
"""What those are called that make ready what a pass needs, or change the module: no passes themselves."""


def _is_no_pass(module: Module, given: Arguments) -> bool:
    """Whether a part of a module out of sight is by its name a method that runs none of its layers."""
    if module.whole is None:
        return False
    if _MEASURING.search(module.name) or direction(module.name) == "max":
        return True
    if not _ASKING.match(module.name):
        return False
    return not given.values() or _ANSWERING.fullmatch(module.name) is None


def call_module(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    """A forward pass."""
    last = module.name
    if module.opaque and (_TELLING.match(last) or (module.whole is not None and _PREPARING.match(last))):
        return call_unknown(machine, module, given, node)
    if module.opaque and _is_no_pass(module, given):
        return Unknown()
    if module.assumed and module.whole is None and given.exact and not given.values():
        return Unknown()  # a class or a function that makes one: a network is given something
    module.calls += 1
    if isinstance(module.cls, Library) and last in LOSSES:
        tensors.mix(machine, node, last, *module.buffers.values(), given.get(0, "input"))
        log_target = module.arguments.get("log_target")
        reduction = module.reduction or "unknown"
        ignores = leaves_out(module.arguments) or module.open_arguments
        found = tensors.loss(machine, last, given, node, reduction, module.site, log_target, ignores=ignores)
        found.guessed = module.assumed
        return found
    if isinstance(module.cls, Library) and module.cls.path.startswith(REGION_LOSSES):
        machine.emit(RegionsCompared(machine.where(node), module, given.get(0, "input") or given.get(0, "y_pred")))
        compared = tensors.derive(machine, node, *given.values())
        compared.role, compared.criterion, compared.guessed = "loss", True, True
        return compared
    if module.unwrapped().opaque and "labels" in given.keywords and given.keywords.keys() <= FORWARD_KEYWORDS:
        machine.emit(Labelled(machine.where(node), module, given))
    _note_tokens(machine, module, given, node)
    outermost = not machine.forwards
    before = {each: each.calls for each in module.modules()} if outermost else {}
    if not outermost and not machine.grad[-1]:
        machine.emit(PartPassed(machine.where(node), module, module.unwrapped().training))
    synchronised = module.wrapper in ("ddp", "fabric", "accelerate", "fsdp")
    machine.forwards.append(module)
    machine.inside_ddp += synchronised
    try:
        result = _forward(machine, module, given, node)
    finally:
        machine.forwards.pop()
        machine.inside_ddp -= synchronised
    if isinstance(result, Tensor) and (module.opaque or module.assumed):
        result.guessed = True
    if module.opaque and isinstance(module.cls, Library) and module.cls.path.startswith("transformers."):
        pooled.note_output(result, given.get(0, "input_ids"))
    if last in BY_ROW and isinstance(result, Tensor):
        _go_by_row(machine, module, result, given.get(0, "input"), node)
    if isinstance(result, Tensor) and module.unwrapped().opaque and not machine.grad[-1] and "labels" in given.keywords:
        result.of_tokens = _are_filled_up(given)
    _mark_answers(result, given, is_last=outermost)
    if outermost:
        graph = frozenset(each for tensor in tensors_in(result) for each in tensor.graph)
        trained = [each for each in module.parameters() if each.requires_grad]
        where = machine.where(node)
        held = next((each for each in machine.held_back if each.attributes.get("of") is module), None)
        grad, changes = machine.grad[-1], by_mode(module)
        training = module.unwrapped().training
        inputs = [tensor for value in given.values() for tensor in tensors_in(value)]
        called = [each for each in module.modules() if each is module or each.calls > before.get(each, 0)]
        acting = [each for each in called if each.training]
        machine.emit(
            Forward(where, module, result, grad, training, graph, trained, changes, held, inputs, given, acting)
        )
    return result


def _note_tokens(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> None:
    held = module.unwrapped()
    if (
        module.wraps is None
        and held.opaque
        and isinstance(held.cls, Library)
        and held.cls.path.startswith("transformers.")
    ):
        ids = given.get(0, "input_ids")
        if ids is not None and not is_constant(ids, None):
            machine.emit(TokensRead(machine.where(node), held, ids))


def _are_filled_up(given: Arguments) -> bool:
    """Whether the texts of a batch, of several, were filled up to one length."""
    ids = given.keywords.get("input_ids")
    loader = ids.batch_of if isinstance(ids, Tensor) else None
    one = loader is not None and is_constant(loader.arguments.get("batch_size", Constant(1)), 1)
    return ids is not None and ids.encoding is not None and ids.encoding.pads is True and not one


def _mark_answers(result: Value, given: Arguments, *, is_last: bool) -> None:
    """Note what a model says, by itself or as a part of what it gives, and not what it only hands on."""
    parts = [result] if isinstance(result, Tensor) else tensors_in(result)
    handed = {id(each) for value in given.values() for each in tensors_in(value)} if len(parts) > 1 else ()
    for each in parts:
        if not each.parameter and id(each) not in handed:
            each.answer = is_last


def _go_by_row(machine: Machine, module: Module, result: Tensor, given: Value | None, node: ast.AST) -> None:
    """What a layer that gives a row for each row does with those of a batch."""
    rows = given.rows_of if isinstance(given, Tensor) else None
    if rows is not None and isinstance(module.cls, Library):
        result.rows_of = rows
        if module.name == "BatchNorm1d" and module.training:
            machine.emit(Normalised(machine.where(node), module, rows))


def _forward(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    if isinstance(module.cls, Class):
        own = module.cls.find("forward")
        if isinstance(own, Function):
            return passes.forward(machine, module, own, given, node)
        if "torch.nn.Sequential" not in module.libraries():
            return layer(machine, module, given, node)
    return library_forward(machine, module, given, node)


def library_forward(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    """What the `forward` of a library's class does, also as a base of the program's."""
    last = module.name
    if module.wraps is not None:
        if isinstance(module.wraps, Module) and module.wraps.device == "cuda" and module.wrapper != "compiled":
            given = _moved(machine, given, node)  # DDP, DataParallel, Fabric and Accelerate move the inputs themselves
        return call(machine, module.wraps, given, node)
    if isinstance(module.items, list) and (last == "Sequential" or "torch.nn.Sequential" in module.libraries()):
        value: Value = given.positional[0] if given.positional else Unknown()
        if module.more_items and isinstance(value, Tensor):
            value = tensors.derive(machine, node, value, keep=True, saves=False)
            value.device = None  # a layer out of sight may move it
        for part in module.items:
            value = call(machine, part, Arguments([value]), node)
        return tensors.derive(machine, node, value) if module.more_items else value
    if last in ACTIVATIONS:
        return tensors.activated(machine, last, given.get(0, "input"), node, module.argument("dim", 0))
    if last in ("Flatten", "Unflatten", "Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"):
        source = given.get(0, "input")
        kept = tensors.derive(machine, node, source, keep=True, saves=last.startswith("Dropout"))
        if last.startswith(("Dropout", "Identity")):
            kept.places = source.places if isinstance(source, Tensor) else None
            axes.same(kept, source)
            axes.sized(kept, source)
        elif last == "Unflatten" or not is_constant(module.argument("start_dim", 0) or Constant(1), 1):
            forms.forget(kept)  # else the first dimension stays, and what lies behind it is one
        if last == "Flatten" and isinstance(source, Tensor):
            start, end = (module.argument(name, place) for place, name in enumerate(("start_dim", "end_dim")))
            axes.flattened(kept, source, number_of(start or Constant(1)), number_of(end or Constant(-1)))
        return kept
    return layer(machine, module, given, node)


def _moved(machine: Machine, given: Arguments, node: ast.AST) -> Arguments:
    def moved(value: Value) -> Value:
        if isinstance(value, Tensor) and value.device == "cpu":
            return tensors.on_gpu(machine, value, node)
        if isinstance(value, Sequence):
            return Sequence([moved(each) for each in value.items], value.kind, more=value.more)
        return value

    keywords = {key: moved(value) for key, value in given.keywords.items()}
    return Arguments([moved(each) for each in given.positional], keywords, given.star, given.double_star)


_SAVE_NOTHING = re.compile(
    r"Upsample|Upsampling\w+|Pixel(?:Uns|S)huffle|ChannelShuffle|Fold|Unfold|\w+Pad[123]d|AdaptiveAvgPool[123]d"
)
"""Layers that autograd keeps no tensor of, or need not."""


def _is_wrapped(machine: Machine, module: Module) -> bool:
    """Whether this process has put a module under DDP."""
    return module.within_ddp is not None and module.within_ddp.process == machine.process


def layer(machine: Machine, module: Module, given: Arguments, node: ast.AST) -> Value:
    """A call of a layer of a library, or of a module out of sight."""
    own = module.parameters() if module.opaque else module.own
    values = given.values()
    inputs = [tensor for value in values for tensor in tensors_in(value)]
    if own:
        tensors.mix(machine, node, module.name, *inputs, *own[:1])
    made = tensors.derive(machine, node, *values, *own, saves=bool(own) or not _SAVE_NOTHING.fullmatch(module.name))
    if machine.grad[-1] and any(each.requires_grad for each in own):
        around = next((m for m in machine.forwards if isinstance(m, Module) and _is_wrapped(machine, m)), None)
        if around is not None and not machine.inside_ddp:
            for graph in made.graph.difference(*(tensor.graph for tensor in inputs)):
                graph.bypassed = around
    if own and module.device is not None:
        made.device, made.sure_device = module.device, False
    made.escaped = made.escaped or module.escaped
    made.layer, made.as_given = module.name, True
    if isinstance(module.cls, Library) and module.cls.path.startswith(REGION_NETS):
        made.role = ACTIVATIONS.get(text_of(module.arguments.get("activation")) or "")
    made.cuts = tensors.without_given_gradients(made.cuts)  # a step along them: meant to be constants
    if module.name == "Linear":
        size = module.argument("out_features", 1)
        is_one = is_constant(size, 1)
        made.as_given = not is_one or not traits_of(size) >= ASSUMED  # else a file of settings may ask for more outputs
        made.form = forms.COLUMN if is_one and made.as_given else None
        made.dense = True
    axes.of_layer(machine, module, made, given.get(0, "input") or given.keywords.get("query"), node)
    masks.note_layer(machine, module, given, node)
    halves.of_layer(machine, module, made)
    made.angle = angles.COSINE if module.name == "CosineSimilarity" else ""
    if module.name in ("LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell"):
        made.packed = any(tensor.packed for tensor in inputs)
        states = [tensors.derive(machine, node, made) for _ in range(2 if module.name == "LSTM" else 1)]
        for each in states if module.name in ("LSTM", "GRU", "RNN") and isinstance(module.cls, Library) else ():
            each.states_of = module
        return Sequence([made, Sequence(states, "tuple") if module.name == "LSTM" else states[0]], "tuple")
    return made
