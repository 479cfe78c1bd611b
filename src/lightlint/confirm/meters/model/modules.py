"""What modules hold beside their registered parts: at a finding's lines, behind the first update and at the end."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.model.parameters import checksums
from lightlint.confirm.meters.numbers import OPTIMIZERS, PARAMETERS, Lines, is_module, is_tensor

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 40
_OWN = {"_parameters", "_buffers", "_modules"}


def install(session: Session) -> None:
    """Remember the modules in whose methods findings lie, and look at them once they are in use."""
    meter = _Holders(session)
    guard = session.guard("modules")
    session.snapshots["holders"] = meter.meet
    session.snapshots["shared"] = shared
    session.snapshots["states"] = meter.states
    session.after_update.append(guard(meter.after))
    session.at_end.append(guard(meter.tell))


class _Holders:
    """Modules to be looked at, and states that the program keeps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lines = Lines(session)
        self._met: dict[int, tuple[weakref.ref[Any], set[int]]] = {}
        self._told = False
        self._kept: dict[str, tuple[Any, dict[str, str]]] = {}

    def meet(self, frame: Any) -> Mapping[str, Any]:
        """Note whose method the frame is in; there is nothing to compare."""
        holder = frame.f_locals.get("self")
        if is_module(holder) and len(self._met) < _MOST:
            self._met.setdefault(id(holder), (weakref.ref(holder), set()))[1].update(self._lines.now())
        return {}

    def after(self, _optimizer: Any) -> None:
        """Once training runs, modules are as they are meant to be."""
        if not self._told:
            self.tell()
        for name, (state, before) in list(self._kept.items()):
            del self._kept[name]
            self._session.record.emit("kept", name=name, changed=checksums(_tensors_of(state)) != before)

    def tell(self) -> None:
        """Record what each module holds that it has not registered."""
        if self._told:
            return
        self._told = True
        trained = {
            id(each)
            for _, optimizer in OPTIMIZERS.living()
            for group in optimizer.param_groups
            for each in group["params"]
        }
        for reference, findings in self._met.values():
            module = reference()
            if module is not None and findings:
                self._session.record.emit(
                    "module",
                    type=type(module).__name__,
                    findings=sorted(findings),
                    modules=dict(_unregistered(module, trained)),
                    tensors=_tensors(module),
                    parameters=[name for name, each in module._parameters.items() if each is not None],
                )

    def states(self, frame: Any) -> Mapping[str, Any]:
        """For dicts of tensors among the variables: how many there are and how many share memory with a parameter."""
        if "torch" not in sys.modules:
            return {}
        found: dict[str, Any] = {}
        addresses: set[int] | None = None
        for name, value in _variables(frame):
            tensors = _tensors_of(value)
            if not tensors or len(found) >= _MOST:
                continue
            if addresses is None:
                addresses = {each.data_ptr() for _, module in _modules(frame) for each in module.parameters()}
            aliased = {key: each for key, each in tensors.items() if each.data_ptr() in addresses}
            found[name] = [len(tensors), len(aliased)]
            if aliased:
                self._kept[name] = value, checksums(tensors)
        return found


def _variables(frame: Any) -> Iterator[tuple[str, Any]]:
    yield from list(frame.f_locals.items())
    for name, value in list(getattr(frame.f_locals.get("self"), "__dict__", {}).items()):
        if name not in _OWN:
            yield f"self.{name}", value


def _modules(frame: Any) -> Iterator[tuple[str, Any]]:
    """Modules among a frame's variables, those that `self` holds among them."""
    for name, value in _variables(frame):
        if is_module(value):
            yield name, value
    holder = frame.f_locals.get("self")
    for name, value in list(getattr(holder, "_modules", {}).items()) if is_module(holder) else ():
        if is_module(value):
            yield f"self.{name}", value


def shared(frame: Any) -> Mapping[str, Any]:
    """For each module among the variables: numbers of its parameters, its places and the modules in them."""
    if "torch" not in sys.modules:
        return {}
    found: dict[str, Any] = {}
    for name, module in _modules(frame):
        if len(found) >= _MOST or "_modules" not in vars(module):
            continue
        children = [child for child in module._modules.values() if child is not None]
        with_parameters = [child for child in children if any(True for _ in child.parameters())]
        found[name] = {
            "parameters": [PARAMETERS.of(each) for each in module.parameters()][:_MOST],
            "places": len(with_parameters),
            "distinct": len({id(child) for child in with_parameters}),
        }
    return found


def _tensors_of(state: Any) -> dict[str, Any]:
    if not issubclass(type(state), dict) or len(state) > 100 * _MOST:
        return {}
    return {str(key): each for key, each in list(state.items()) if is_tensor(each)}


def _unregistered(module: Any, trained: set[int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Plain lists, tuples and dicts of a module that hold modules."""
    registered = {id(each) for each in module.modules()}
    for name, value in vars(module).items():
        held = [] if name in _OWN else list(_inside(value, 2))
        if held:
            missing = [each for each in held if id(each) not in registered]
            parameters = {id(each) for one in missing for each in one.parameters()}
            yield (
                name,
                {
                    "held": len(held),
                    "missing": len(missing),
                    "parameters": len(parameters),
                    "trained": len(parameters & trained),
                },
            )


def _inside(value: Any, depth: int) -> Iterator[Any]:
    if depth and type(value) in {list, tuple}:
        for each in value:
            yield from _held(each, depth)
    elif depth and issubclass(type(value), dict):
        for each in value.values():
            yield from _held(each, depth)


def _held(value: Any, depth: int) -> Iterator[Any]:
    if is_module(value):
        yield value
    else:
        yield from _inside(value, depth - 1)


def _tensors(module: Any) -> dict[str, dict[str, Any]]:
    """A module's tensors that are neither parameters nor buffers, and whether they follow when a twin of it moves."""
    plain = {name: value for name, value in vars(module).items() if is_tensor(value)}
    if not plain:
        return {}
    kind: Any = type(module)
    twin = kind.__new__(kind)
    vars(twin).update(vars(module))
    vars(twin).update(_parameters={}, _modules={}, _buffers=dict(module._buffers))
    try:
        twin.to("meta")
        follows = {name: vars(twin).get(name, twin._buffers.get(name)) for name in plain}
    except Exception:  # a `to` of the program's own may want what the twin lacks
        follows = {}
    return {
        name: {
            "lost": value.grad_fn is not None and value.requires_grad,
            "follows": follows[name].is_meta if is_tensor(follows.get(name)) else None,
        }
        for name, value in plain.items()
    }
