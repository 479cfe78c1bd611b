"""Which calls use CUDA where there is any, so that the process holds it from then on."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.code.names import Names

# each seen to start CUDA on a GPU; `device_count`, `empty_cache`, `manual_seed` and `Event` do not
STARTING = {
    f"torch.cuda.{name}"
    for name in (
        "set_device", "current_device", "get_device_name", "get_device_properties", "get_device_capability", "init",
        "mem_get_info", "synchronize", "current_stream", "default_stream", "is_bf16_supported", "cudart", "memory_summary",
        "reset_peak_memory_stats", "get_rng_state", "set_per_process_memory_fraction",
    )
}  # fmt: skip
# each seen to start the driver, which reads its variables then, and not to make CUDA's context
ASKING = {
    "torch.cuda.is_available",
    "torch.cuda.get_arch_list",
    "torch.accelerator.is_available",
}
# of what takes a `device`, what makes nothing there
_NAMING = (
    "torch.cuda.",
    "torch.amp.",
    "torch.set_default_device",
    "torch.random.",
    "torch.autocast",
    "torch.profiler.",
)
_SPREAD = {"auto", "balanced", "balanced_low_0", "sequential"}
_DEPTH = 3


def starts_cuda(names: Names, call: cst.Call) -> bool:
    """Whether a call surely makes its process use CUDA, if only to ask for a property of a GPU."""
    return names.call(call) in STARTING or puts_on_gpu(names, call)


def asks_driver(names: Names, call: cst.Call) -> bool:
    """Whether a call surely makes its process start CUDA's driver, only to ask: for one, whether there is a GPU."""
    return names.call(call) in ASKING


def puts_on_gpu(names: Names, call: cst.Call) -> bool:
    """Whether a call surely moves something to a GPU, or makes a tensor there: `x.cuda()`, `torch.zeros(2, device="cuda")`."""
    method, name = names.method(call), names.call(call) or ""
    if isinstance(call.func, cst.Attribute) and method == "cuda" and name.partition(".")[0] != "torch":
        return True
    if method == "from_pretrained" and _is_mapped(names, call):
        return True
    given = device_given(names, call)
    return given is not None and is_gpu(names, given)


def _is_mapped(names: Names, call: cst.Call) -> bool:
    """Whether a model that is loaded is spread over the GPUs there are, or put on one."""
    given = names.argument(call, "device_map")
    where = names.constant(given.value) if given is not None else None
    places = set(where.values()) if isinstance(where, dict) else {where}
    return any(each in _SPREAD or (isinstance(each, str) and each.startswith("cuda")) for each in places)


def device_given(names: Names, call: cst.Call) -> cst.BaseExpression | None:
    """The device to which a call moves something, or on which it makes a tensor; None where it names none."""
    method, name = names.method(call), names.call(call) or ""
    given = call.args[0].value if method == "to" and call.args and isinstance(call.func, cst.Attribute) else None
    device = names.argument(call, "device")
    if device is not None and name.startswith("torch.") and method != "device" and not name.startswith(_NAMING):
        given = device.value
    return given


def is_gpu(names: Names, value: cst.CSTNode | None, depth: int = 0) -> bool:
    """Whether a value surely is a CUDA device where there is one."""
    text = names.constant(value)
    if isinstance(text, str):
        return text.startswith("cuda")
    match value:
        case cst.Call() if names.call(value) == "torch.device" and value.args:
            return is_gpu(names, value.args[0].value, depth)
        case cst.IfExp():
            return is_gpu(names, value.body, depth) or is_gpu(names, value.orelse, depth)
        case cst.Name() if depth < _DEPTH:
            found = names.bindings.lookup(value)
            plain = len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path
            return plain and is_gpu(names, found[0].value, depth + 1)
    return False
