"""What the models say of torch, against torch: each expression is rehearsed and run, and what the rehearsal claims of its
result must be so: what kind of thing it is, its device, dtype and shape, whether it carries a graph and to what, whether it
is the very object it came from, and what a second backward pass through it raises.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from rehearsing import main_of, names_of

from lightlint.engine.events import Backward, LeafChanged
from lightlint.models.names.kinds import AFFINE, SCHEDULE_LENGTHS, kind_of
from lightlint.models.names.parameters import ROOMS
from lightlint.models.names.tables import (
    ACTIVATIONS,
    COLLECTIVES,
    FACTORIES,
    FLAT,
    KEEPS_ROLE,
    LOSSES,
    NUMBERS,
    WITHOUT_GRAPH,
)
from lightlint.values.core import Constant, Sequence, Value
from lightlint.values.training import Module, Tensor

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
torch.manual_seed(0)
w = nn.Parameter(torch.ones(3, 4))
p = nn.Parameter(torch.ones(1))
x = torch.rand(3, 4, requires_grad=True)
y = torch.rand(3, 4)
h = x * w
v = torch.rand(4)
m = torch.rand(3, device="meta")
n = torch.randint(0, 4, (3,))
i = torch.randint(0, 3, (3, 4))
b = y > 0.5
s = torch.rand(2, 3, 8)
image = torch.rand(2, 4, 8, 8)
volume = torch.rand(2, 4, 8, 8, 8)
ls, limage, lvolume = s.clone().requires_grad_(), image.clone().requires_grad_(), volume.clone().requires_grad_()
net = nn.Linear(4, 4)
"""

METHODS = """
view(-1) reshape(12) flatten() squeeze() unsqueeze(0) permute(1, 0) transpose(0, 1) contiguous() float() double() half()
to(torch.float64) to("cpu") to("meta") cpu() clone() type_as(y) view_as(y) expand(3, 4) t() expand_as(y) bfloat16()
type(torch.float64) unflatten(1, (2, 2)) swapaxes(0, 1) movedim(0, 1) narrow(0, 0, 2) select(0, 1) chunk(3) split(1) unbind()
repeat(2, 1) repeat_interleave(2) index_select(0, n[:1] * 0) moveaxis(0, 1) ravel() tile(2, 1) broadcast_to((3, 4))
gather(1, i) swapdims(0, 1) nan_to_num() adjoint()
argmax() argmin() argmax(1) eq(y) ne(y) gt(y) lt(y) ge(y) le(y) size() dim() numel() sign() long() int() bool() argsort()
argwhere() byte() char() short() new() greater(y) greater_equal(y) less(y) less_equal(y) not_equal(y) hash_tensor()
is_signed() is_neg() is_conj() is_inference() is_distributed() is_set_to(y) sparse_dim() dense_dim() dim_order()
isnan() isfinite() isinf() all() any() equal(y) allclose(y) count_nonzero() nonzero() floor() ceil() round() bernoulli()
multinomial(1) unique() stride() element_size() nelement() ndimension() storage_offset() get_device() data_ptr()
mean() sum() mean(1) sum(0) nanmean() nansum() prod() std() var() norm() logsumexp(1) cumsum(0) cumprod(0) amax() amin() max()
min() max(1) min(1) max(y) min(y) topk(2) sort() kthvalue(1) median() median(1) mode() cummax(0) aminmax()
abs() neg() exp() log() log1p() expm1() sqrt() rsqrt() square() reciprocal() pow(2) sin() cos() tan() tanh() asin() atan() erf()
sigmoid() relu() softmax(1) log_softmax(1) clamp(0, 1) clamp(min=0) clip(0, 1) frac() trunc() lerp(y, 0.5) fmod(0.3) remainder(0.3)
add(y) sub(y) mul(y) div(y) true_divide(y) floor_divide(0.3) matmul(y.t()) mm(y.t()) mv(v) outer(v) dot(v) addmm(y[:, :3], y)
masked_fill(b, 0) masked_select(b) where(b, y) take(i) take_along_dim(i, 1) index_add(0, n * 0, y) scatter(1, i, y)
scatter_add(1, i, y) index_fill(0, n * 0, 1.0) diag() diagonal() trace() tril() triu() flip(0) roll(1) rot90() cross(y[:, :4]) kron(y)
maximum(y) minimum(y) fmax(y) hypot(y) atan2(y) addcmul(y, y) addcdiv(y, y) dist(y) renorm(2, 0, 1) logit() sinc() softmax(dim=0)
detach() detach().requires_grad_() clone().detach() requires_grad_() data item() tolist() detach().numpy() new_zeros(3)
new_ones((3, 4)) new_tensor([1.0]) new_empty(2) new_full((2,), 1.0) shape dtype device requires_grad is_leaf ndim T mT real
retain_grad() type() int().float() logical_not() histc() bincount() unfold(0, 2, 1) is_floating_point() is_contiguous() is_complex() is_pinned() is_shared() is_same_size(y) sum().is_nonzero()
logical_and(b) logical_or(b) logical_xor(b) isclose(y) isneginf() isposinf() isreal() signbit() heaviside(y) __len__() dim() sum().item()
"""

FUNCTIONS = """
torch.cat([h, y]) torch.stack([h, y]) torch.where(b, h, y) torch.mean(h) torch.sum(h) torch.matmul(h, y.t()) torch.mm(h, y.t())
torch.bmm(s, s.transpose(1, 2)) torch.einsum("ij,kj->ik", h, y) torch.tensordot(h, y, dims=2) torch.exp(h) torch.log(h) torch.sqrt(h)
torch.abs(h) torch.clamp(h, 0, 1) torch.relu(h) torch.sigmoid(h) torch.tanh(h) torch.softmax(h, 1) torch.log_softmax(h, 1)
torch.max(h) torch.max(h, 1) torch.min(h, y) torch.maximum(h, y) torch.topk(h, 2) torch.sort(h) torch.argmax(h) torch.argsort(h)
torch.norm(h) torch.linalg.norm(h) torch.linalg.vector_norm(h) torch.linalg.svdvals(h) torch.fft.rfft(h) torch.special.expit(h)
torch.cumsum(h, 0) torch.prod(h) torch.std(h) torch.var(h) torch.var_mean(h) torch.std_mean(h) torch.logsumexp(h, 1) torch.cdist(h, y)
torch.flatten(h) torch.squeeze(h) torch.unsqueeze(h, 0) torch.reshape(h, (-1,)) torch.transpose(h, 0, 1) torch.permute(h, (1, 0)) torch.t(h)
torch.split(h, 1) torch.chunk(h, 3) torch.unbind(h) torch.hstack([h, y]) torch.vstack([h, y]) torch.broadcast_tensors(h, y) torch.meshgrid(v, v)
torch.gather(h, 1, i) torch.index_select(h, 0, n * 0) torch.take(h, i) torch.masked_select(h, b) torch.roll(h, 1) torch.flip(h, [0])
torch.eq(h, y) torch.isnan(h) torch.any(b) torch.all(b) torch.unique(i) torch.bincount(n) torch.histc(y) torch.nonzero(b) torch.equal(h, y)
torch.allclose(h, y) torch.searchsorted(v.sort().values, h) torch.bucketize(h, v.sort().values) torch.count_nonzero(h) torch.multinomial(y, 1)
torch.bernoulli(y) torch.round(h) torch.floor(h) torch.ceil(h) torch.sign(h) torch.pow(h, 2) torch.square(h) torch.add(h, y) torch.sub(h, y)
torch.mul(h, y) torch.div(h, y) torch.outer(v, v) torch.dot(v, v) torch.diag(v) torch.tril(h) torch.triu(h) torch.lerp(h, y, 0.5) torch.atan2(h, y)
torch.zeros(3) torch.ones(3, 4) torch.full((2,), 1.0) torch.rand(3) torch.randn(3, requires_grad=True) torch.randint(0, 2, (3,)) torch.arange(3)
torch.linspace(0, 1, 3) torch.eye(3) torch.tensor(1.0) torch.tensor([1.0, 2.0]) torch.tensor([1, 2]) torch.empty(3) torch.randperm(3)
torch.as_tensor([1.0]) torch.as_tensor(x) torch.from_numpy(y.numpy()) torch.logspace(0, 1, 3) torch.normal(0.0, 1.0, (3,)) torch.hann_window(4)
torch.hamming_window(4) torch.tril_indices(3, 3) torch.triu_indices(3, 3) torch.scalar_tensor(1.0) torch.FloatTensor([1.0]) torch.LongTensor([1])
torch.Tensor([1.0]) torch.Tensor(2, 3) torch.IntTensor([1]) torch.DoubleTensor([1.0]) torch.BoolTensor([True]) torch.ByteTensor([1])
torch.zeros(3, device="meta") torch.zeros(3, device="cpu") torch.zeros(3, dtype=torch.long) torch.ones(3, dtype=torch.float64) torch.zeros(())
torch.zeros_like(h) torch.ones_like(h) torch.rand_like(h) torch.randn_like(h) torch.empty_like(h) torch.full_like(h, 1.0) torch.zeros_like(m)
torch.randint_like(h, 3) torch.zeros_like(h, device="meta") torch.zeros_like(h, requires_grad=True) torch.numel(h) torch.is_tensor(h) torch.isin(h, y) torch.isclose(h, y)
torch.nn.Parameter(y) torch.nn.Parameter(y, requires_grad=False) torch.autograd.grad(h.sum(), x) torch.autograd.grad(h.sum(), x, create_graph=True)
torch.autograd.grad((h * h).sum(), x, create_graph=True) torch.autograd.Variable(h) torch.clone(h) torch.detach(h) torch.linalg.matrix_rank(h) torch.is_storage(h) torch.typename(h) torch.result_type(h, y) torch.complex(y, y) torch.view_as_real(torch.complex(y, y))
F.relu(h) F.leaky_relu(h) F.gelu(h) F.silu(h) F.elu(h) F.selu(h) F.softplus(h) F.hardtanh(h) F.softmax(h, 1) F.log_softmax(h, 1) F.sigmoid(h)
F.tanh(h) F.logsigmoid(h) F.softmin(h, 1) F.gumbel_softmax(h) F.normalize(h) F.dropout(h) F.linear(h, w) F.embedding(n, w) F.one_hot(n)
F.pad(h, (1, 1)) F.interpolate(image, scale_factor=2) F.conv2d(image, torch.ones(2, 4, 3, 3)) F.max_pool2d(image, 2) F.avg_pool2d(image, 2)
F.adaptive_avg_pool2d(image, 1) F.layer_norm(h, (4,)) F.batch_norm(h, None, None, training=True) F.group_norm(image, 2) F.instance_norm(image)
F.cosine_similarity(h, y) F.pairwise_distance(h, y) F.unfold(image, 3) F.pixel_shuffle(image, 2) F.glu(h) F.mish(h) F.hardswish(h)
F.scaled_dot_product_attention(s, s, s) F.grid_sample(image, torch.zeros(2, 4, 4, 2), align_corners=False) F.local_response_norm(image, 2)
F.cross_entropy(h, n) F.cross_entropy(h, y) F.cross_entropy(h, n, reduction="none") F.cross_entropy(h, n, reduction="sum") F.nll_loss(h, n)
F.mse_loss(h, y) F.l1_loss(h, y) F.smooth_l1_loss(h, y) F.huber_loss(h, y) F.kl_div(h, y) F.kl_div(h, y, reduction="batchmean")
F.binary_cross_entropy(y * p, y) F.binary_cross_entropy_with_logits(h, y) F.soft_margin_loss(h, y) F.multilabel_soft_margin_loss(h, y)
F.hinge_embedding_loss(h, y) F.poisson_nll_loss(h, y) F.gaussian_nll_loss(h, y, y) F.multi_margin_loss(h, n) F.multilabel_margin_loss(h, i[:, :1].expand(3, 4)) F.triplet_margin_loss(h, y, y)
F.cosine_embedding_loss(h, y, torch.ones(3)) F.margin_ranking_loss(h, y, y) F.mse_loss(h, y, reduction="none") F.triplet_margin_with_distance_loss(h, y, y)
F.ctc_loss(torch.rand(5, 1, 4).log_softmax(2), torch.ones(1, 2, dtype=torch.long), torch.tensor([5]), torch.tensor([2]))
h+y h-y h*y h/y h**2 -h h@y.t() h+1 2*h h//0.3 h%0.3 h>y h==y h[0] h[:,1] h[n*0] h[b] h[...,0] x+1 y*2 w*2 p*y ~b b&b h[None]
"""

LAYERS = """
Linear(4, 2):h Bilinear(4, 4, 2):h,y Conv1d(3, 2, 3):s Conv2d(4, 2, 3):image Conv3d(4, 2, 3):volume ConvTranspose1d(3, 2, 3):s ConvTranspose2d(4, 2, 3):image
ConvTranspose3d(4, 2, 3):volume LazyLinear(2):h Embedding(4, 2):n EmbeddingBag(4, 2):i Identity():h ReLU():h LeakyReLU():h PReLU():h RReLU():h ReLU6():h SELU():h
CELU():h ELU():h GELU():h SiLU():h Mish():h Sigmoid():h Tanh():h Softplus():h Softsign():h Hardtanh():h Hardswish():h Hardsigmoid():h Softmax(1):h
LogSoftmax(1):h Softmax2d():image Softmin(1):h LogSigmoid():h GLU():h Threshold(0.1, 0.0):h Hardshrink():h Softshrink():h Tanhshrink():h
Dropout():h Dropout1d():s Dropout2d():image Dropout3d():volume AlphaDropout():h FeatureAlphaDropout():image Flatten():image Unflatten(1, (2, 2)):h
MaxPool1d(2):s MaxPool2d(2):image MaxPool3d(2):volume AvgPool1d(2):s AvgPool2d(2):image AvgPool3d(2):volume AdaptiveAvgPool1d(1):s AdaptiveAvgPool2d(1):image
AdaptiveAvgPool3d(1):volume AdaptiveMaxPool1d(1):s AdaptiveMaxPool2d(1):image Upsample(scale_factor=2):image UpsamplingBilinear2d(scale_factor=2):image
UpsamplingNearest2d(scale_factor=2):image PixelShuffle(2):image PixelUnshuffle(2):image ZeroPad2d(1):image ConstantPad2d(1, 0.0):image ReflectionPad2d(1):image
ReplicationPad2d(1):image Fold((8, 8), 1):torch.rand(2,4,64) Unfold(3):image CosineSimilarity():h,y PairwiseDistance():h,y BatchNorm1d(4):h BatchNorm2d(4):image
BatchNorm3d(4):volume LayerNorm(4):h GroupNorm(2, 4):image InstanceNorm1d(3):s InstanceNorm2d(4):image LocalResponseNorm(2):image RMSNorm(4):h SyncBatchNorm(4):h
Sequential(nn.Linear(4, 2), nn.ReLU()):h Sequential():h ChannelShuffle(2):image LPPool2d(2, 2):image FractionalMaxPool2d(2, output_size=2):image MaxUnpool2d(2):image,image.long()*0
RNN(8, 4):s LSTM(8, 4):s GRU(8, 4):s RNNCell(4, 2):h LSTMCell(4, 2):h GRUCell(4, 2):h MultiheadAttention(8, 2):s,s,s TransformerEncoderLayer(8, 2, 16):s
TransformerDecoderLayer(8, 2, 16):s,s Transformer(8, 2, 1, 1, 16):s,s CrossEntropyLoss():h,n BCEWithLogitsLoss():h,y MultiLabelSoftMarginLoss():h,y NLLLoss():h,n
KLDivLoss(reduction="batchmean"):h,y BCELoss():y*p,y MSELoss():h,y L1Loss():h,y SmoothL1Loss():h,y HuberLoss():h,y TripletMarginLoss():h,y,y HingeEmbeddingLoss():h,y
CosineEmbeddingLoss():h,y,torch.ones(3) MarginRankingLoss():h,y,y GaussianNLLLoss():h,y,y PoissonNLLLoss():h,y MultiMarginLoss():h,n MultiLabelMarginLoss():h,i[:,:1].expand(3,4) SoftMarginLoss():h,y
TripletMarginWithDistanceLoss():h,y,y CTCLoss():torch.rand(5,1,4).log_softmax(2),torch.ones(1,2).long(),torch.tensor([5]),torch.tensor([2])
MSELoss(reduction="none"):h,y CrossEntropyLoss(reduction="sum"):h,n
"""


def split(text: str) -> list[str]:
    """Calls that stand beside one another, apart at spaces that are in no brackets and no quotes."""
    found, depth, quoted = [""], 0, False
    for character in text.strip():
        quoted ^= character == '"'
        depth += (character in "([{") - (character in ")]}")
        if character.isspace() and not depth and not quoted:
            found.append("")
        else:
            found[-1] += character
    return [each for each in found if each]


def expressions() -> Iterator[str]:
    """Each expression once: methods of a tensor with a graph, of one without and of a leaf, functions, layers."""
    for name in split(METHODS):
        yield from (f"{tensor}.{name}" for tensor in ("h", "y", "x"))
    for function in split(FUNCTIONS):
        yield from (function, function if "autograd" in function else of_leaves(function))
    for layer, given in layers():
        yield from (f"(lambda layer: layer({each}))(nn.{layer})" for each in (given, of_leaves(given)))


def of_leaves(given: str) -> str:
    """With leaves that require gradients instead of what has no graph or saved something for its own."""
    return re.sub(r"\b(s|image|volume)\b", r"l\1", re.sub(r"\bh\b", "x", given))


def layers() -> Iterator[tuple[str, str]]:
    """Layers, and what each is given."""
    for each in split(LAYERS):
        layer, _, given = each.rpartition("):")
        yield f"{layer})", given


def ran(program: str) -> dict[str, Any]:
    """The names of a program at its end."""
    names: dict[str, Any] = {}
    exec(HEAD + program, names)
    return names


def wrong(claim: Value, fact: Any, claimed: dict[str, Value], real: dict[str, Any]) -> Iterator[str]:
    """What a rehearsal claims of a value that is not so."""
    if isinstance(claim, Constant):
        if not isinstance(fact, (torch.Tensor, torch.dtype, torch.device, torch.Size)) and claim.value != fact:
            yield f"it is {fact!r}, not {claim.value!r}"
    elif isinstance(claim, Sequence):
        if not isinstance(fact, (tuple, list)):
            yield f"it is a {type(fact).__name__}, no {claim.kind}"
        elif not claim.more and len(claim.items) != len(fact):
            yield f"it has {len(fact)} items, not {len(claim.items)}"
        else:
            for one, other in zip(claim.items, fact, strict=False):
                yield from wrong(one, other, claimed, real)
    elif (
        isinstance(claim, Tensor) and not claim.escaped and not isinstance(fact, numpy.ndarray)
    ):  # which it stands for, too
        yield from wrong_of_tensor(claim, fact, claimed, real)


def wrong_of_tensor(claim: Tensor, fact: Any, claimed: dict[str, Value], real: dict[str, Any]) -> Iterator[str]:
    if not isinstance(fact, torch.Tensor):
        yield f"it is a {type(fact).__name__}, no tensor"
        return
    if claim.device is not None and claim.device != fact.device.type:
        yield f"it is on {fact.device.type}, not on {claim.device}"
    if claim.dtype not in (None, "one-hot", str(fact.dtype).removeprefix("torch.")):
        yield f"it is {fact.dtype}, not {claim.dtype}"
    if claim.form is not None and (fact.dim() != (2 if claim.form == "column" else 1)):
        yield f"its shape is {tuple(fact.shape)}, no {claim.form}"
    if claim.scalar and fact.dim():
        yield f"it has {fact.dim()} dimensions, not none"
    if claim.requires_grad != fact.requires_grad and not claim.mixed:
        yield f"requires_grad is {fact.requires_grad}, not {claim.requires_grad}"
    same = [name for name, value in claimed.items() if value is claim and name != "result"]
    if same and not any(real.get(name) is fact for name in same):
        yield f"it is not the very tensor {same[0]}"


@pytest.mark.parametrize("expression", dict.fromkeys(expressions()))
def test_result_is_as_claimed(expression: str) -> None:
    try:
        real = ran(f"result = {expression}")
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        pytest.skip(f"torch refuses it: {error}")
    claimed = names_of(main_of(f"{HEAD}result = {expression}\n"))
    assert not [*wrong(claimed["result"], real["result"], claimed, real)]


@pytest.mark.parametrize("expression", dict.fromkeys(expressions()))
def test_gradients_reach_what_is_claimed(expression: str) -> None:
    """Which of the leaves a backward pass gives gradients, and whether a second one raises."""
    twice = f"result = {expression}\nresult.sum().backward()\n"
    try:
        real = ran(twice)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return  # a result without a graph: the other test says whether that is known
    program = main_of(HEAD + twice)
    claimed = names_of(program)
    passes = [event for event in program.events if isinstance(event, Backward)]
    if not isinstance(claimed["result"], Tensor) or not passes or claimed["result"].mixed:
        return
    flat = not FLAT.isdisjoint(re.findall(r"\.(\w+)\(", expression))
    for name in ("w", "p", "x"):
        gradient = real[name].grad
        reached = gradient is not None and not (flat and bool((gradient == 0).all()))
        assert reached == (claimed[name] in passes[0].parameters), name
    again = [
        event for event in main_of(f"{HEAD}{twice}result.sum().backward()\n").events if isinstance(event, Backward)
    ]
    if again[-1].twice:
        with pytest.raises(RuntimeError, match="second time"):
            ran(f"{twice}result.sum().backward()\n")


GIVEN = split(
    """
x x,y limage ls x,1 x,2 x,0.5 limage,2 x,n [x,y] x,y,y x,0,n*0 ls,3 lvolume,2 x,y.t() limage,(1,1) x,(3,4) x,0,1 y,x
"""
)
"""Arguments of which one or the other suits most functions."""
NO_FUNCTIONS = re.compile(
    "compile|load|save|seed|manual_seed|set_.*|use_.*|.*autocast.*|init_num_threads|wait|fork|parse_.*|import_.*|read_vitals"
    "|prepare_multiprocessing_environment|merge_type.*|.*_torch_function.*|classproperty|sym_.*|fbgemm_.*|vmap|.*_copy|slice_inverse|unsafe_.*"
)
"""What is no function of tensors, or would change what comes after it."""
NOT_CLAIMED_RIGHT = {
    "normal": "a mean with a graph gives a result with one, whose gradients are 0",
    "asarray": "up to torch 2.11 it gives a tensor without a graph",
    "clamp_": "a limit with a graph gives the tensor one",
    "norm": "the norm of order 0 has no gradient",
    "norm_except_dim": "the norm of order 0 has no gradient",
    "vector_norm": "the norm of order 0 has no gradient",
    "resize_as_": "it gives a tensor without a graph one of another shape",
    "sparse_coo_tensor": "indices carry no graph",
    "cudnn_is_acceptable": "it is a flag",
    "to_dlpack": "it is a capsule",
    "einsum": "of a single operand it may save nothing",
    "chain_matmul": "of a single matrix it saves nothing",
    "hinge_embedding_loss": "of an integer reduction",
    "histogramdd": "it gives a tensor and a tuple of tensors",
    "lstsq": "by the driver and the shape, some results are empty",
    "lu": "it gives two or three tensors",
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), "of several tensors it gives several"),
    **dict.fromkeys(
        ("adaptive_max_pool1d", "max_pool1d_with_indices"), "indices come beside the result where they are asked for"
    ),
}
"""Functions of which a rehearsal claims what is not so in some call, and why that is left."""
ROOMS_OF_FUNCTIONS = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft")


def functions() -> Iterator[str]:
    """The public functions of torch."""
    for room in ROOMS_OF_FUNCTIONS:
        held = vars(importlib.import_module(room)).items()
        names = [name for name, each in held if callable(each) and not isinstance(each, type) and name[:1].islower()]
        yield from (f"{room}.{name}" for name in names if not NO_FUNCTIONS.fullmatch(name))


@pytest.mark.parametrize("function", functions())
def test_no_function_is_claimed_to_be_what_it_is_not(function: str) -> None:
    """Also those that no table names: what is claimed of their results, and of a second backward pass through them."""
    if function.rpartition(".")[2] in NOT_CLAIMED_RIGHT:
        pytest.skip(NOT_CLAIMED_RIGHT[function.rpartition(".")[2]])
    for given in GIVEN:
        program = f"result = {function}({given})\n"
        try:
            real = ran(program)
        except (
            ArithmeticError,
            AssertionError,
            AttributeError,
            BufferError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ):
            continue
        claimed = names_of(main_of(HEAD + program))
        assert not [*wrong(claimed["result"], real["result"], claimed, real)], given
        passes = "result.sum().backward()\n" * 2
        again = [event for event in main_of(f"{HEAD}{program}{passes}").events if isinstance(event, Backward)]
        if again and again[-1].twice:
            with pytest.raises(RuntimeError):
                ran(f"{program}{passes}")


@pytest.mark.parametrize("layer", dict.fromkeys(layer for layer, _ in layers()))
def test_layer_has_parameters_as_claimed(layer: str) -> None:
    real = ran(f"layer = nn.{layer}")["layer"]
    claimed = names_of(main_of(f"{HEAD}layer = nn.{layer}\n"))["layer"]
    assert isinstance(claimed, Module)
    assert bool(claimed.parameters()) == bool([*real.parameters()])
    assert claimed.training == real.training


IN_PLACE = """
add_(1) sub_(1) mul_(2) div_(2) zero_() fill_(1) copy_(y) clamp_(0, 1) relu_() sigmoid_() exp_() neg_() pow_(2) sqrt_() abs_() uniform_()
normal_() masked_fill_(b, 0) index_fill_(0, n * 0, 1.0) addcmul_(y, y) addcdiv_(y, y) lerp_(y, 0.5) clamp_min_(0) round_() floor_() random_()
squeeze_() unsqueeze_(0) tanh_() bernoulli_(0.5) scatter_(1, i, 1.0) index_add_(0, n * 0, torch.ones(3, 4)) exponential_() erfinv_() nan_to_num_() t_()
"""
VIEWS = {"squeeze_", "unsqueeze_", "t_"}


@pytest.mark.parametrize("method", split(IN_PLACE))
def test_changes_in_place(method: str) -> None:
    """What changes a tensor gives that tensor back, and may not touch a leaf that requires gradients."""
    for program in (f"result = y.{method}", f"with torch.no_grad():\n    result = x.{method}"):
        real, claimed = ran(program), names_of(main_of(HEAD + program))
        assert not [*wrong(claimed["result"], real["result"], claimed, real)]
    changes = [event for event in main_of(f"{HEAD}x.{method}\n").events if isinstance(event, LeafChanged)]
    if method.partition("(")[0] in VIEWS:
        return
    assert changes
    with pytest.raises(RuntimeError, match="leaf"):
        ran(f"x.{method}")


def subclasses(room: Any, base: type) -> dict[str, type]:
    """The public classes of a module that extend a class."""
    found = {name: each for name, each in vars(room).items() if isinstance(each, type) and issubclass(each, base)}
    return {name: each for name, each in found.items() if each is not base and not name.startswith("_")}


def test_classes_are_what_they_are_to_training() -> None:
    schedulers, data = torch.optim.lr_scheduler, torch.utils.data
    wanted = {
        **dict.fromkeys(
            (f"torch.optim.{name}" for name in subclasses(torch.optim, torch.optim.Optimizer)), "optimizer"
        ),
        **dict.fromkeys(
            (f"torch.optim.lr_scheduler.{name}" for name in subclasses(schedulers, schedulers.LRScheduler)), "schedule"
        ),
        **dict.fromkeys((f"torch.utils.data.{name}" for name in subclasses(data, data.Sampler)), "sampler"),
        **dict.fromkeys((f"torch.nn.{name}" for name in subclasses(torch.nn, torch.nn.Module)), "module"),
    }
    assert {path: kind_of(path) for path in wanted} == wanted


_BY_LENGTH = {"LSTM", "GRU", "RNN"}  # take `*args`, and hand them to one for all
_CALLED = [
    (f"{room}.{name}", parameters)
    for room, rows in ROOMS.items()
    if room.startswith("torch")
    for parameters, names in rows.items()
    for name in names.split()
    if name not in _BY_LENGTH
]


@pytest.mark.parametrize(("path", "parameters"), _CALLED)
def test_parameters_are_called_as_torch_calls_them(path: str, parameters: str) -> None:
    found: Any = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    if path == "torch.utils.data.DistributedSampler":
        found = torch.utils.data.distributed.DistributedSampler
    if found is None:
        pytest.skip("this torch has none")
    assert [*inspect.signature(found).parameters][: len(parameters.split())] == parameters.split()


def test_arguments_stand_where_they_are_looked_for() -> None:
    schedulers = torch.optim.lr_scheduler
    for name, (length, place) in SCHEDULE_LENGTHS.items():
        if hasattr(schedulers, name):
            assert [*inspect.signature(getattr(schedulers, name)).parameters][place] == length
    for name, (argument, place, default) in AFFINE.items():
        parameter = inspect.signature(getattr(torch.nn, name)).parameters[argument]
        assert [*inspect.signature(getattr(torch.nn, name)).parameters][place] == argument
        assert parameter.default is default


def test_collectives_exist() -> None:
    assert not {name for name in COLLECTIVES if not hasattr(torch.distributed, name)} - {"all_reduce_coalesced"}


def test_names_of_the_tables_are_tried() -> None:
    tried = set(re.findall(r"\w+", " ".join((METHODS, FUNCTIONS, LAYERS, IN_PLACE))))
    for table in (FACTORIES, KEEPS_ROLE, WITHOUT_GRAPH, NUMBERS, LOSSES, ACTIVATIONS):
        left = {
            name
            for name in table
            if name not in tried and (hasattr(torch.Tensor, name) or hasattr(torch.nn.functional, name))
        }
        assert not left - {"cuda", "pin_memory"}  # which take a GPU
