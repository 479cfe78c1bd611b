"""Of which class a value is, where that is known, and what a test for a class answers by it."""

from __future__ import annotations

import re

from lightlint.models.names.kinds import wrapper_of
from lightlint.values.core import Bound, Class, Function, Library, Sequence, Value
from lightlint.values.training import Instance, Module, Tensor

FUNCTION = "types.FunctionType"
_OF_TORCH = re.compile(r"torch\.nn\.(?!Module$)[A-Z]\w+")
_A_FUNCTION = re.compile(r"torch\.(?:nn\.functional\.)?[a-z]\w+")
_NO_WRAPPER = re.compile(  # a class that no wrapper of torch is, nor derives from
    r"torch\.nn\.(?!Module$)(?:\w+\.)*(?!\w*Parallel)[A-Z]\w+"
    r"|(?:torchvision|timm|transformers|peft|diffusers|torch_geometric|monai)\.(?:\w+\.)*(?!\w*(?:Parallel|Wrap))[A-Z]\w+"
)
_DERIVE = {  # public classes of `torch.nn` that others of these derive from
    "Hardtanh": r"ReLU6",
    "NLLLoss": r"NLLLoss2d",
    "RNNBase": r"RNN|LSTM|GRU",
    "RNNCellBase": r"(?:RNN|LSTM|GRU)Cell",
    "Upsample": r"Upsampling\w+",
    "Container": r"\w+",
    "SyncBatchNorm": r"BatchNorm\dd",  # which `convert_sync_batchnorm` may have made of it
}


def class_of(value: Value | None) -> Class | Library | None:
    """The class that an object was made of, no other; None where one that derives from it may be meant."""
    if is_function(value):
        return Library(FUNCTION)
    if isinstance(value, Tensor):  # a batch may be a list of tensors, or a dict
        surely = value.role != "batch" and not (value.guessed or value.escaped)
        return Library("torch.nn.Parameter" if value.parameter else "torch.Tensor") if surely else None
    if isinstance(value, Sequence):
        return Library(f"builtins.{value.kind}") if value.kind in ("list", "tuple", "set") else None
    if not isinstance(value, Instance) or getattr(value, "assumed", False):
        return None
    if isinstance(value, Module) and value.opaque:
        return None
    if isinstance(value, Module) and value.wrapper and isinstance(value.cls, Library):
        return value.cls if wrapper_of(value.cls.last) == value.wrapper else None
    if isinstance(value.cls, Class):
        return value.cls if value.cls.sees_all() and value.kind != "unknown" else None
    return value.cls if isinstance(value, Module) and _OF_TORCH.fullmatch(value.cls.path) else None


def is_function(value: Value | None) -> bool:
    """Whether it is a function, of the program or of torch."""
    return isinstance(value, Function) or (isinstance(value, Library) and bool(_A_FUNCTION.fullmatch(value.path)))


def is_none_of(value: Value | None, kinds: list[Value]) -> bool:
    """Whether an object is surely of none of some classes."""
    cls = class_of(value) if not isinstance(value, Bound) else Library(FUNCTION)
    return isinstance(cls, Library) and all(is_apart(cls.path, each) for each in kinds)


def is_apart(path: str, kind: Value) -> bool:
    """Whether a class of torch, or that of functions, derives from another neither by itself nor by what that says of others."""
    if isinstance(kind, Class):
        return kind.sees_all() and not any(each.startswith(("abc.", "typing.")) for each in kind.libraries())
    if wrapper_of(path.rpartition(".")[2]):
        return isinstance(kind, Library) and bool(_NO_WRAPPER.fullmatch(kind.path))
    if not isinstance(kind, Library) or not _OF_TORCH.fullmatch(kind.path):
        return path == FUNCTION and isinstance(kind, Library) and kind.path in ("torch.nn.Module", "torch.Tensor")
    if kind.path == path or path == "torch.nn.Module":
        return kind.path != path
    own = path.rpartition(".")[2]
    derived = _DERIVE.get(kind.last)
    return not (own == f"Lazy{kind.last}" or (derived and re.fullmatch(derived, own)))


def name_of(library: Library) -> str | None:
    """What a class or function of a library is called by itself; None of what may be a module."""
    if library.path == FUNCTION:
        return "function"
    return library.last if library.last[:1].isupper() or _A_FUNCTION.fullmatch(library.path) else None
