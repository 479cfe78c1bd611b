"""Functions of torch and of the libraries around it."""

from __future__ import annotations

import ast
import re

from lightlint.engine.arguments import Arguments
from lightlint.engine.calls import call, call_flag, call_unknown
from lightlint.engine.events import Called, ClassesBlended, CudaUsed, Differentiated, ParametersChanged, Written
from lightlint.engine.language import operators
from lightlint.engine.language.definitions import GRAD_MODES
from lightlint.engine.machine import WORKER, Machine
from lightlint.engine.misuse import is_caught
from lightlint.models import objects, tensors
from lightlint.models.data import collating, graphs, learning, ranking
from lightlint.models.names.classes import name_of
from lightlint.models.names.huggingface import ROWS
from lightlint.models.names.kinds import kind_of
from lightlint.models.names.tables import (
    ACTIVATIONS,
    DEVICES,
    DTYPES,
    FACTORIES,
    HARMLESS,
    LOSSES,
    NUMBERS,
    SHORT_DTYPES,
)
from lightlint.models.numbers import angles, gradients, halves
from lightlint.models.ranks.groups import rank_value
from lightlint.models.registry import FUNCTIONS, PACKAGES, function
from lightlint.models.sequences import cuts
from lightlint.models.tensors import draws, forms, layouts, precision
from lightlint.models.tensors.arithmetic import note_sum
from lightlint.models.training import modules
from lightlint.values import arrays
from lightlint.values.canonical import canonical
from lightlint.values.core import (
    ARRAYS,
    BLENDED,
    FALSE,
    INTEGERS,
    LASTING,
    LEFT_OUT,
    LISTED,
    NO_TRAITS,
    NONE,
    SHUFFLED,
    SINGLE,
    TRUE,
    Constant,
    Device,
    Function,
    Library,
    Mapping,
    Sequence,
    SomeDevice,
    Unknown,
    Value,
    is_constant,
    names_cuda,
    names_integers,
    number_of,
    text_of,
    traits_of,
)
from lightlint.values.training import Instance, Module, Tensor, tensors_in

_PRETRAINED = re.compile(
    r"^(torchvision\.models\.(?!\w*Weights\b|(?:get|list)_\w+$(?<!get_model)|feature_extraction\.)|timm\.create_model|torch\.hub\.load$|segmentation_models_pytorch\.|monai\.networks\.)"
)
_TRANSFORMER = re.compile(r"Model|Bert|GPT|ViT|T5|Llama|Whisper|Wav2Vec|CLIP|Swin|DistilBert|Roberta")
_BESIDE_MODELS = re.compile(r"Tokenizer|Processor|FeatureExtractor|Config\b")  # what stands beside a model and is none
_DRAWS = re.compile(
    r"(?:numpy\.)?random\.(?:rand(?:om|int|range|n)?|uniform|choice|gauss|normal(?:variate)?|binomial|beta)"
)
_ROWS = frozenset(["arange", "linspace", "logspace", "randperm", "hann_window", "hamming_window"])  # of one dimension
_MOST_OF_RANDINT = 3  # low, high, size
_BUILDERS = ("hydra.utils.instantiate", "hydra.utils.call", "hydra.utils.get_")  # they call whatever settings name
_ASKED = re.compile("(?:is|has|set|get|use|are|can)_")  # functions of `torch` that compute no tensor


def call_library(machine: Machine, library: Library, given: Arguments, node: ast.AST) -> Value:
    """A call of a library's function or class."""
    path = library.path
    model = FUNCTIONS.get(path)
    if model is not None:
        return model(machine, given, node)
    root, last = path.partition(".")[0], path.rpartition(".")[2]
    if root == "builtins":
        from lightlint.models.python.builtins import call_builtin

        return call_builtin(machine, last, given, node)
    owner = path.rpartition(".")[0]
    by_class = kind_of(owner) not in (None, ROWS) and owner.rpartition(".")[2][:1].isupper()
    if given.positional and by_class:  # Base.method(self, ...); a table has class methods
        return objects.call_library_method(machine, given.positional[0], last, given.behind(1), node)
    if kind_of(path) is not None:
        return objects.make_library(machine, library, given, node)
    if root == "torch":
        return _torch(machine, path, last, given, node)
    known = PACKAGES[root](machine, path, given, node) if root in PACKAGES else None
    if known is not None:
        return known
    if _PRETRAINED.match(path) or (
        root == "transformers"
        and last in ("from_pretrained", "from_config")
        and _TRANSFORMER.search(path)
        and not _BESIDE_MODELS.search(path)
    ):
        return _pretrained(machine, path, last, given, node)
    if root in ("sklearn", "imblearn") and last[:1].isupper():
        return machine.instance(library, "estimator", node)
    if graphs.is_of_one(path):
        return graphs.made(machine, call_unknown(machine, library, given, node))
    if root not in HARMLESS or path.startswith(_BUILDERS):
        return call_unknown(machine, library, given, node)
    values = given.values()
    kept = traits_of(*values) | learning.kept_of(values)
    if "dtype" in given.keywords:
        kept = kept | INTEGERS if names_integers(given.keywords["dtype"]) else kept - INTEGERS
    if last in ("where", "clip", "maximum", "abs", "select", "putmask", "delete", "extract"):
        kept = kept - LEFT_OUT
    if last in ("putmask", "place", "copyto", "put") and isinstance(filled := given.get(0, "a"), Unknown):
        filled.traits -= LEFT_OUT
    found = Unknown(
        None, kept & (LASTING | ARRAYS) if root == "numpy" else kept, hint=last, plain=path.startswith("math.")
    )
    found.lent = values
    found.axes = arrays.of_library(path, given.positional, given.keywords)
    if root == "numpy" and last in ("array", "asarray", "asanyarray", "ascontiguousarray", "copy") and values:
        cuts.keep(found, values[0])
    if _DRAWS.fullmatch(path) is not None:
        machine.clock += 1
        found.key = ("drawn", machine.clock)
    ranking.note(machine, path, given, found, node)
    if root == "numpy":
        draws.note_moved(machine, found, last, given, node)
    return found


def _pretrained(machine: Machine, path: str, last: str, given: Arguments, node: ast.AST) -> Module:
    made = modules.opaque(machine, node, path)
    made.arguments = given.by_name()
    if last == "from_pretrained":
        made.training = False
    return made


def _torch(machine: Machine, path: str, last: str, given: Arguments, node: ast.AST) -> Value:
    if last in GRAD_MODES or last == "set_grad_enabled":
        return _grad_mode(machine, path, last, given, node)
    if last in ACTIVATIONS:
        tensors.note_single(machine, last, given.get(0, "input"), given.get(1, "dim"), node)
        return tensors.activated(machine, last, given.get(0, "input"), node, given.get(1, "dim"))
    written = (
        given.values() if last.endswith("_") else [each for each in (given.keywords.get("out"),) if each is not None]
    )
    gradients.change(*written)
    if last in LOSSES and path.startswith("torch.nn.functional."):
        return tensors.loss(machine, last, given, node)
    if path.startswith("torch.cuda.") and Library(path).names_tensor_type():
        made = _factory(machine, last, given, node)
        made.device = "cuda"
        return made
    if path.startswith(
        ("torch.nn.init.", "torch.backends.", "torch.cuda.", "torch.mps.", "torch.random.", "torch.optim.swa_utils")
    ):
        if not path.startswith("torch.nn.init.") or not given.positional:
            return Unknown()
        filled = [each.data_of or each for each in tensors_in(given.positional[0])]
        for each in filled:
            each.uninitialised = False
        changed = [each for each in filled if each.parameter]
        machine.emit(ParametersChanged(machine.where(node), changed, f"init.{last}"))
        return given.positional[0]
    if path.startswith(("torch.distributed.", "torch.multiprocessing.", "torch.ao.", "torch.quantization.")):
        for value in given.values():
            machine.escape(value)
        return Unknown()
    first = given.get(0, "data")
    if last in ("as_tensor", "asarray") and isinstance(first, Tensor) and len(given.values()) == 1:
        return first
    if last == "is_tensor" and path.count(".") == 1:
        return TRUE if isinstance(first, Tensor) else Unknown(plain=True)
    if _ASKED.match(last) and path.count(".") == 1 and last not in NUMBERS:
        return Unknown(plain=True)
    if last in FACTORIES and path.count(".") <= 2:
        return _factory(machine, last, given, node)
    if last.endswith("_like"):
        made = machine.tensor(node)
        first = given.get(0, "input")
        made.device = (
            tensors.device_of(given.keywords["device"])
            if "device" in given.keywords
            else getattr(first, "device", None)
        )
        made.uninitialised = last == "empty_like"
        halves.fresh(machine, made, last, given, node)
        gradients.note_new(made, last)
        _ask_gradient(made, given)
        return made
    if path.count(".") == 1 or path.startswith(
        ("torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.fft.", "torch.nn.utils.rnn.")
    ):
        if (
            last in _OPERATORS
            and path.count(".") == 1
            and len(given.positional) == 2
            and {*given.keywords} <= {"alpha"}
        ):
            first, second = given.positional
            weight = given.keywords.get("alpha")
            second = operators.binary(machine, "*", weight, second, node) if weight is not None else second
            return operators.binary(machine, _OPERATORS[last], first, second, node)
        found = tensors.computed(machine, last, given, node)
        if last in ("cat", "concat", "stack", "vstack", "hstack") and given.positional:
            found.filled_by = given.positional[0].filled_by
        gradients.note_filled(found, last, given)
        layouts.note(machine, found, last, given, node)
        angles.note(machine, found, last, given, node)
        draws.note_moved(machine, found, last, given, node)
        if last == "lerp" and isinstance(found, Tensor):
            note_sum(machine, found, given.get(0, "input") or NONE, given.get(1, "end") or NONE, node)
        if last in precision.NAMES:
            precision.note(machine, found, last, given, node, sure=True)
        return found
    if path.startswith(("torch.func.", "torch.autograd.", "torch.utils.checkpoint")):
        return tensors.derive(machine, node, *given.values())
    return Unknown(hint=last)


_OPERATORS = {"add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/"}


def _grad_mode(machine: Machine, path: str, last: str, given: Arguments, node: ast.AST) -> Value:
    first = given.get(0, "mode")
    if isinstance(first, Function):
        first.flags.add("enable_grad" if last == "enable_grad" else "no_grad")
        return first
    context = machine.instance(Library(path), "grad mode", node)
    if last == "inference_mode" and is_constant(first, False):
        context.cls = Library("torch.enable_grad")
    if last == "set_grad_enabled":
        context.attributes["before"] = Constant(machine.grad[-1])
        machine.grad[-1] = machine.decide(first or Unknown(), node)
    return context


def _factory(machine: Machine, last: str, given: Arguments, node: ast.AST) -> Tensor:
    device = machine.default_device
    written = given.keywords.get("device")
    if machine.phases[-1] == WORKER and names_cuda(written):
        machine.emit(CudaUsed(machine.where(node)))
    if written is not None:
        device = "cpu" if is_constant(written, None) else tensors.device_of(written)
    first = given.get(0, "data")
    made = machine.tensor(node)
    made.device, made.origin, made.sure_device = device, made.site, "default" not in traits_of(written)
    made.uninitialised = last == "empty" or (last in ("Tensor", "FloatTensor") and _are_sizes(given))
    forms.note(made, last, Arguments([], dict(given.keywords)))
    halves.fresh(machine, made, last, given, node)
    made.traits |= SHUFFLED if last == "randperm" else NO_TRAITS
    gradients.note_new(made, last, given.get(1, "fill_value") if last == "full" else None)
    if last in ("tensor", "as_tensor", "from_numpy") and "dtype" not in given.keywords and first is not None:
        made.dtype = "int64" if first.traits & INTEGERS else made.dtype
    if first is not None:
        made.cut_from = first.cut_from
        made.traits |= learning.kept_of([first])
        if isinstance(first, Sequence) and any(is_constant(each, -100) for each in first.items):
            made.traits |= LEFT_OUT
    if last in ("zeros", "ones", "rand", "randn", "empty", "full", "randint"):
        sizes = given if last != "randint" else given.behind(2)
        made.form, made.dense = forms.made_of_sizes(sizes), True
    made.table = last == "from_numpy" or (isinstance(first, Sequence) and len(first.items) > 1)
    _ask_gradient(made, given)
    if last in ("tensor", "as_tensor", "scalar_tensor", "Tensor"):
        plain = isinstance(first, (Constant, Unknown)) and (isinstance(first, Constant) or first.plain)
        made.scalar = last != "Tensor" and (arrays.count_of(first) == 0)
        if written is None and not plain and not isinstance(first, Sequence) and last != "Tensor":
            made.device = first.device if isinstance(first, Tensor) else None
    if isinstance(first, Sequence) and last in _OF_DATA:
        made.stacked = tuple(first.items)
        made.traits |= LISTED if first.more or len(first.items) != 1 or first.grows else NO_TRAITS
    if first is not None and (last in _OF_DATA or last.endswith("Tensor")) and not _are_sizes(given):
        collating.note_made(made, first)
    if first is not None and last in _OF_DATA:
        made.traits = made.traits | (first.traits & (SINGLE | BLENDED))
        if first.traits & BLENDED and names_integers(given.keywords.get("dtype")):
            machine.emit(ClassesBlended(machine.where(node)))
    tensors.note_cuts(machine, made, first, last, node)
    if tensors_in(first) and written is None and last not in ("from_numpy", "randperm", "Tensor"):
        made.device = None
    if (
        last in ("zeros", "ones", "rand", "randn", "empty")
        and isinstance(first, Sequence)
        and not first.items
        and not first.more
    ):
        made.scalar = True
    if "out" in given.keywords or not given.exact:
        made.device = None
    if last in ("zeros", "ones", "rand", "randn", "empty", "randint"):
        sizes = given if last != "randint" else given.behind(1 if len(given.positional) < _MOST_OF_RANDINT else 2)
        made.sizes, made.rank = _sizes(sizes) if last != "randint" else (), _rank(sizes)
        draws.note_drawn(made, last, _all_sizes(sizes))
    made.counts = last == "arange"
    if last in _ROWS:
        made.rank = 1
    return made


_OF_DATA = ("from_numpy", "tensor", "as_tensor", "FloatTensor", "Tensor")


def _ask_gradient(made: Tensor, given: Arguments) -> None:
    made.requires_grad = call_flag(given, "requires_grad")
    if made.requires_grad:
        made.parameters = frozenset([made])


def _are_sizes(given: Arguments) -> bool:
    """Whether `torch.Tensor(...)` is given sizes, and no data."""
    return given.exact and (len(given.positional) > 1 or number_of(given.get(0, "data")) is not None)


def _rank(given: Arguments) -> int | None:
    """How many dimensions a new tensor has, None where that is unknown."""
    first = given.get(0, "size")
    if isinstance(first, Sequence):
        return len(first.items) if not first.more else None
    plain = given.exact and all(
        each.value is not None if isinstance(each, Constant) else isinstance(each, Unknown) and each.plain
        for each in given.positional
    )
    return len(given.positional) if plain and given.positional and first is given.positional[0] else None


def _all_sizes(given: Arguments) -> list[Value] | None:
    first = given.get(0, "size")
    if isinstance(first, Sequence):
        return None if first.more else first.items
    return given.positional if given.exact else None


def _sizes(given: Arguments) -> tuple[int, ...]:
    """The sizes of a new tensor; none where one is unknown."""
    first = given.get(0, "size")
    values = first.items if isinstance(first, Sequence) and not first.more else given.positional
    sizes = [each.value for each in values if isinstance(each, Constant) and isinstance(each.value, int)]
    return tuple(sizes) if given.exact and len(sizes) == len(values) else ()


@function("torch.nn.Parameter")
def _parameter(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    made = modules.parameter(machine, None, node)
    first = given.get(0, "data")
    made.device = first.device if isinstance(first, Tensor) else None if isinstance(first, Unknown) else "cpu"
    made.requires_grad = not is_constant(given.get(1, "requires_grad"), False)
    made.uninitialised = isinstance(first, Tensor) and first.uninitialised
    made.table = isinstance(first, Tensor) and first.table
    return made


@function("torch.cpu.amp.autocast")
def _autocast_on_cpu(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    context = _context(machine, given, node)
    context.arguments["device_type"] = Constant("cpu")
    return context


@function("torch.amp.autocast", "torch.cuda.amp.autocast")
def _autocast(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    return _context(machine, given, node)


def _context(machine: Machine, given: Arguments, node: ast.AST) -> Instance:
    old = isinstance(given.get(0, ""), Constant) and isinstance(getattr(given.get(0, ""), "value", None), bool)
    context = machine.instance(Library("torch.amp.autocast"), "autocast", node)
    first = given.get(0, "device_type")
    context.arguments = dict(given.keywords)
    if first is not None:
        context.arguments["enabled" if old else "device_type"] = first
    second = given.get(1, "dtype")
    if second is not None:
        context.arguments["dtype"] = second
    context.open_arguments = not given.exact
    return context


@function(
    "torch.nn.utils.rnn.PackedSequence",
    "torch.nn.utils.rnn.pack_padded_sequence",
    "torch.nn.utils.rnn.pack_sequence",
)
def _packed_sequence(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    packed = tensors.derive(machine, node, *given.positional[:1], *given.keywords.values())
    packed.packed = True
    return packed


@function("torch.nn.utils.rnn.pad_sequence")
def _pad_sequence(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """Sequences of several lengths in one tensor."""
    padded = tensors.computed(machine, "pad_sequence", given, node)
    if isinstance(padded, Tensor) and given.exact:
        padded.filler = given.get(2, "padding_value") or Constant(0)
    return padded


@function("torch.is_autocast_enabled")
def _is_autocast_enabled(machine: Machine, _: Arguments, __: ast.AST) -> Value:
    """Whether code stands in an autocast block: behind it, it does not any more. A framework may have entered one."""
    if not machine.autocasts:
        return Unknown(hint="is_autocast_enabled") if machine.phases[-1] else FALSE
    enabled = machine.autocasts[-1].arguments.get("enabled")
    return enabled if enabled is not None else TRUE


@function("torch.nn.utils.rnn.pad_packed_sequence")
def _pad_packed_sequence(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    padded = tensors.derive(machine, node, given.get(0, "sequence"))
    first = given.get(1, "batch_first")
    if first is None or is_constant(first, True, False):
        padded.steps = 1 if is_constant(first, True) else 0
    return Sequence([padded, tensors.derive(machine, node, graph=False)], "tuple")


@function("torch.autograd.grad")
def _autograd_grad(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    outputs = given.get(0, "outputs")
    keep = tensors.keeps_graph(given.behind(2))
    reached: dict[int, Tensor] = {}
    below = {graph for tensor in tensors_in(given.get(1, "inputs")) for graph in tensor.graph}  # where the pass stops
    for tensor in tensors_in(outputs):
        for graph in tensor.graph - below:
            graph.go_backward(keep=keep)
        reached.update({each.made: each for each in tensor.parameters})
    graph_of = frozenset(graph for tensor in tensors_in(outputs) for graph in tensor.graph)
    machine.emit(Differentiated(machine.where(node), [*reached.values()], graph_of, is_caught(machine, "RuntimeError")))
    create = given.get(4, "create_graph")
    records = not given.exact or not (create is None or is_constant(create, False))
    found = tensors.derive(machine, node, outputs, graph=records, how="" if records else "autograd.grad")
    found.scalar = all(each.scalar for each in tensors_in(given.get(1, "inputs")))
    return Sequence([found], "tuple", more=True)


@function("torch.func.stack_module_state")
def _stacked_state(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    """Two dicts of new tensors, by the names of the parameters and of the buffers: the networks' own are only read."""
    for value in given.values():
        machine.escape(value)
    return Sequence([Unknown(hint="params"), Unknown(hint="buffers")], "tuple")


@function("torch.autograd.Variable")
def _variable(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    made = tensors.derive(machine, node, given.get(0, "data"), graph=False, keep=True, how="Variable")
    tensors.note_cuts(machine, made, given.get(0, "data"), "Variable", node)
    if is_constant(given.get(1, "requires_grad"), True):
        made.requires_grad, made.leaf, made.parameters = True, True, frozenset([made])
    return made


@function("torch.autograd.backward")
def _autograd_backward(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    keep = tensors.keeps_graph(given.behind(1))
    tensors.backward(machine, given.get(0, "tensors") or NONE, node, "backward", keep=keep)
    return NONE


@function("torch.nn.parallel.data_parallel")
def _data_parallel(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """One forward pass over several GPUs."""
    module, inputs = given.get(0, "module"), given.get(1, "inputs")
    if module is None:
        return Unknown()
    spread = inputs.items if isinstance(inputs, Sequence) and not inputs.more else [inputs or Unknown()]
    keywords = given.get(5, "module_kwargs")
    named = keywords.items if isinstance(keywords, Mapping) else {}
    return call(machine, module, Arguments([*spread], {str(key): each for key, each in named.items()}), node)


@function("apex.amp.scale_loss")
def _scale_loss(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """A context that gives the loss, scaled; its end unscales the gradients."""
    context = machine.instance(Library("apex.amp.scale_loss"), "context", node)
    first = given.get(0, "loss") or Unknown()
    context.attributes["value"] = tensors.derive(machine, node, first, keep=True) if tensors_in(first) else first
    return context


@function("torch.cuda.is_available", "torch.accelerator.is_available")
def _cuda(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return TRUE


@function(
    "torch.backends.mps.is_available",
    "torch.xpu.is_available",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.compiler.is_compiling",
)
def _never(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return FALSE


@function("torch.cuda.device_count")
def _device_count(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return Unknown(DEVICES, plain=True)


@function("torch.device")
def _device(_: Machine, given: Arguments, __: ast.AST) -> Value:
    first = given.get(0, "type") or given.get(0, "device")
    if isinstance(first, Constant):
        return Device(first.value, first.traits)
    return (
        SomeDevice(first.key, first.traits, hint="device", plain=True)
        if first is not None
        else SomeDevice(hint="device")
    )


@function(
    "torchvision.models.feature_extraction.create_feature_extractor",
    "torchvision.models._utils.IntermediateLayerGetter",
)
def _extractor(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    """Another module of the same layers."""
    net = given.get(0, "model")
    if not isinstance(net, Module):
        return Unknown()
    made = modules.opaque(machine, node, "torchvision.models.feature_extraction")
    made.own, made.attributes["model"] = [], net
    made.training, made.device = net.training, net.device
    return made


@function("torch.set_default_device", "torch.set_default_tensor_type")
def _default_device(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    machine.default_device = tensors.device_of(given.get(0, "device"))
    if not given.keywords and text_of(given.get(0, "device")) is None:
        machine.default_dtype = ""
    return NONE


@function("torch.set_default_dtype")
def _default_dtype(machine: Machine, given: Arguments, _: ast.AST) -> Value:
    machine.default_dtype = halves.dtype_of(given.get(0, "d"))
    return NONE


@function("torch.load")
def _load(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    found = Mapping(more=True)
    found.loaded = Called(machine.where(node), "torch.load", given)
    return found


@function("torch.save")
def _save(machine: Machine, given: Arguments, node: ast.AST) -> Value:
    machine.emit(Written(machine.where(node), "torch.save", given.get(1, "f"), given.get(0, "obj")))
    return NONE


@function(
    "torch.compile",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "torch.jit.optimize_for_inference",
)
def _same(_: Machine, given: Arguments, __: ast.AST) -> Value:
    return given.positional[0] if given.positional else given.keywords.get("model") or Unknown()


@function(
    "torch.set_float32_matmul_precision",
    "torch.use_deterministic_algorithms",
)
def _nothing(_: Machine, __: Arguments, ___: ast.AST) -> Value:
    return NONE


def library_attribute(machine: Machine, library: Library, name: str) -> Value:
    """An attribute of a library's module, class or constant."""
    if name == "rank" and library.path.endswith("rank_zero_only"):
        return rank_value(machine, "rank")
    path = canonical(f"{library.path}.{name}")
    if DTYPES.match(path):
        return Constant(f"torch.{SHORT_DTYPES.get(name, name)}")
    if name in ("__name__", "__qualname__") and (called := name_of(library)) is not None:
        return Constant(called)
    if name == "__version__":
        return Unknown(("of", path), frozenset({"version"}), hint=name, plain=True)
    if path in ("sys.argv", "sys.platform", "sys.version_info", "os.name"):
        return Unknown(("of", path), hint=name)
    if path in ("math.pi", "math.inf", "math.e", "numpy.inf", "numpy.pi", "math.nan", "numpy.nan"):
        return Unknown(("constant", path), plain=True)
    return Library(path, library.package)
