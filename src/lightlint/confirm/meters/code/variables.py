"""Numbers, and lengths of lists, among the variables at a finding's lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.numbers import is_tensor

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 100


def install(session: Session) -> None:
    """Compare the frame's variables around a finding's lines."""
    session.snapshots["variables"] = numbers
    session.snapshots["lengths"] = lengths


def numbers(frame: Any) -> Mapping[str, Any]:
    """The value of each variable that is a number or a tensor with one."""
    found: dict[str, Any] = {}
    for name, value in _variables(frame):
        if type(value) in {int, float, bool}:
            found[name] = value
        elif is_tensor(value) and value.dim() == 0 and not value.is_meta:
            found[name] = value.detach().item()
        if len(found) == _MOST:
            break
    return found


def lengths(frame: Any) -> Mapping[str, Any]:
    """The length of each variable that is a list, of those in a dict as well."""
    found: dict[str, Any] = {}
    for name, value in _variables(frame):
        if type(value) is list:
            found[name] = len(value)
        elif issubclass(type(value), dict) and len(value) < _MOST:
            found |= {f"{name}[{key!r}]": len(each) for key, each in value.items() if type(each) is list}
        if len(found) >= _MOST:
            break
    return found


def _variables(frame: Any) -> Iterator[tuple[str, Any]]:
    """Local variables, attributes of `self`, and the globals that the code names."""
    local = frame.f_locals
    yield from list(local.items())
    for name, value in list(getattr(local.get("self"), "__dict__", {}).items()):
        yield f"self.{name}", value
    for name in frame.f_code.co_names:
        if name not in local and name in frame.f_globals:
            yield name, frame.f_globals[name]
