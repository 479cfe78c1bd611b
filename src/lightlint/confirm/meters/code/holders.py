"""Who holds what: places of a list that are one tensor, subsets of one data set, attributes that a hook left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST = 200


def install(session: Session) -> None:
    """Look around the findings' lines, and at a module and its data module when training starts."""
    session.snapshots["aliases"] = aliases
    session.snapshots["datasets"] = datasets
    tell = session.guard("holders")(lambda trainer, module: _tell(session, trainer, module))

    def come_to(hook: str, trainer: Any, module: Any) -> None:
        if hook == "on_train_start":
            tell(trainer, module)

    session.in_trainer.append(come_to)


def _tell(session: Session, trainer: Any, module: Any) -> None:
    held = {"module": module, "data module": getattr(trainer, "datamodule", None)}
    session.record.emit(
        "attributes", **{name.replace(" ", "_"): sorted(vars(each)) for name, each in held.items() if each is not None}
    )


def aliases(frame: FrameType) -> Mapping[str, Any]:
    """For each list of tensors that the frame names: [its places, the tensors that lie in them]."""
    found = {}
    for name, value in _named(frame):
        if isinstance(value, list) and 1 < len(value) <= _MOST and all(hasattr(each, "data_ptr") for each in value):
            found[name] = [len(value), len({id(each) for each in value})]
    return found


def datasets(frame: FrameType) -> Mapping[str, Any]:
    """For each subset that the frame names, which data set it is a part of."""
    return {name: id(value.dataset) for name, value in _named(frame) if type(value).__name__ == "Subset"}


def _named(frame: FrameType) -> Iterator[tuple[str, Any]]:
    yield from list(frame.f_locals.items())
    held = getattr(frame.f_locals.get("self"), "__dict__", {})
    yield from ((f"self.{name}", value) for name, value in list(held.items())[:_MOST])
