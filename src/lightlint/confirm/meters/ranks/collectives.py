"""Which collectives each rank calls, in order, and from which of the user's lines.

What C++ code exchanges is not seen: the calls of `torch.distributed` are, and where DDP decides to exchange.
"""

from __future__ import annotations

import inspect
import sys
import threading
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.meters.digest import digest
from lightlint.confirm.meters.frames import places
from lightlint.confirm.meters.numbers import Numbers, is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightlint.confirm.boot.session import Session

_NAMES = (
    "all_reduce",
    "all_reduce_coalesced",
    "reduce",
    "broadcast",
    "broadcast_object_list",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "monitored_barrier",
    "new_group",
)
_MOST = 20_000  # of each process; who looks for the first difference needs them all
_thread = threading.local()


def install(session: Session) -> None:
    """Record collectives before they are waited for, and when DDP decides to exchange gradients."""
    meter = _Collectives(session)
    session.on_import("collectives", "torch.distributed", meter.watch)
    session.on_import("collectives", "torch.nn.parallel.distributed", meter.watch_ddp)


class _Collectives:
    """The collectives of this process so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = 0
        self._models = Numbers()
        self._guard = session.guard("collectives")
        self._tell = self._guard(self._told)
        self._tell_sync = self._guard(self._told_sync)
        self._tell_made = self._guard(self._told_made)

    def watch(self, distributed: ModuleType) -> None:
        core = sys.modules.get("torch.distributed.distributed_c10d")
        for name in _NAMES:
            call = getattr(distributed, name, None)
            if call is None:
                continue
            watched = self._watched(name, call)
            for module in (distributed, core):
                if module is not None and getattr(module, name, None) is call:
                    setattr(module, name, watched)

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(call)

        @wraps(call)
        def collective(*args: Any, **kwargs: Any) -> Any:
            if is_quiet() or getattr(_thread, "inside", False):  # one is often made of others
                return call(*args, **kwargs)
            self._tell(name, signature, args, kwargs)
            _thread.inside = True
            try:
                return call(*args, **kwargs)
            finally:
                _thread.inside = False

        return collective

    def _told(self, name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> None:
        self._number += 1
        if self._number > _MOST:
            return
        given = signature.bind_partial(*args, **kwargs).arguments
        group = given.get("group")
        tensors = [value for value in given.values() if hasattr(value, "data_ptr")]
        lists = [value for value in given.values() if isinstance(value, list) and value]
        listed = next((each for each in lists if all(hasattr(item, "data_ptr") for item in each)), [])
        self._session.record.emit(
            "collective",
            number=self._number,
            name=name,
            shape=list(tensors[0].shape) if tensors else None,
            whole=group is None or _is_whole(group),
            items=len(listed),
            distinct=len({(item.data_ptr(), tuple(item.shape)) for item in listed if item.numel()}),
            places=places(sys._getframe(2)),
        )

    def watch_ddp(self, module: ModuleType) -> None:
        """Whether gradients are to be exchanged, at each forward pass of DDP and at each backward pass.

        The constructor exchanges, too: it compares the ranks' parameters.
        """
        ddp: Any = module.DistributedDataParallel
        forward, construct = ddp.forward, ddp.__init__

        @wraps(construct)
        def __init__(model: Any, *args: Any, **kwargs: Any) -> None:
            self._tell_made(construct, model, args, kwargs)
            construct(model, *args, **kwargs)

        ddp.__init__ = __init__

        @wraps(forward)
        def watched(model: Any, *args: Any, **kwargs: Any) -> Any:
            self._tell_sync("forward", model, (*args, *kwargs.values()))
            return forward(model, *args, **kwargs)

        ddp.forward = watched
        torch = sys.modules["torch"]
        run = torch.autograd.backward

        def backward(*args: Any, **kwargs: Any) -> Any:
            for _, model in self._models.living():
                self._tell_sync("backward", model)
            return run(*args, **kwargs)

        torch.autograd.backward = backward

    def _told_made(self, construct: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> None:
        given = inspect.signature(construct).bind_partial(model, *args, **kwargs).arguments
        group = given.get("process_group")
        self._session.record.emit(
            "collective",
            number=self._number,
            name="DistributedDataParallel",
            shape=None,
            whole=given.get("device_mesh") is None and (group is None or _is_whole(group)),
            items=0,
            distinct=0,
            places=places(sys._getframe(2)),
        )

    def _told_sync(self, when: str, model: Any, given: tuple[Any, ...] = ()) -> None:
        self._session.record.emit(
            "exchange",
            when=when,
            model=self._models.of(model),
            wanted=bool(model.require_backward_grad_sync),
            grad=sys.modules["torch"].is_grad_enabled(),
            buffers=bool(getattr(model, "will_sync_module_buffers", bool)()),
            regroups=not model.find_unused_parameters or bool(getattr(model, "static_graph", False)),
            whole=_is_whole(model.process_group),
            inputs=digest(given) if given and all(map(_is_on_cpu, given)) else None,
            joined=bool(getattr(getattr(model, "_join_config", None), "enable", False)),
            places=places(sys._getframe(2)),
        )


def _is_on_cpu(thing: Any) -> bool:
    """Whether a checksum of it waits for no GPU, which may itself wait for another rank."""
    return is_tensor(thing) and str(thing.device) == "cpu"


def _is_whole(group: Any) -> bool:
    distributed = sys.modules["torch.distributed"]
    return bool(distributed.get_world_size(group) == distributed.get_world_size())
