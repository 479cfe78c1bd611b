"""What each backward pass starts from, on each rank: the loss, the operations behind it, the memory that it took."""

from __future__ import annotations

import sys
import zlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.meters.process.memory import PEAKS, held

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MOST_NODES = 20_000
_MOST_PASSES = 200


def install(session: Session) -> None:
    """Look at the loss before each backward pass."""
    session.on_import("losses", "torch", lambda torch: _Losses(session).watch(torch))


class _Losses:
    """The backward passes so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = 0
        self._held: dict[str, float] = {}
        self._look = session.guard("losses")(self._tell)

    def watch(self, torch: ModuleType) -> None:
        run = torch.autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            self._look(tensors)
            return run(tensors, *args, **kwargs)

        torch.autograd.backward = backward

    def _tell(self, tensors: Any) -> None:
        self._number += 1
        if self._number > _MOST_PASSES:
            return
        roots = [tensors] if hasattr(tensors, "grad_fn") else list(tensors)
        peaks = PEAKS.take("losses")
        rise = {name: round(max(0.0, peak - self._held.get(name, peak)), 3) for name, peak in peaks.items()}
        graph, nodes = graph_of(roots)
        value = float(roots[0].detach()) if len(roots) == 1 and roots[0].numel() == 1 else None
        self._session.record.emit(
            "loss",
            number=self._number,
            value=value,
            graph=graph,
            nodes=nodes,
            rise=rise,
            device=str(roots[0].device),
            anomaly=bool(sys.modules["torch"].is_anomaly_enabled()),
        )
        self._held = held()


def graph_of(roots: list[Any]) -> tuple[str, int]:
    """A checksum of the operations behind tensors, in the order of a walk from them, and their number."""
    waiting = [each.grad_fn for each in roots if each.grad_fn is not None]
    seen = {id(node) for node in waiting}
    names: list[str] = []
    nodes = list(waiting)  # holds them, so that no address is used twice
    while waiting and len(names) < _MOST_NODES:
        node = waiting.pop()
        names.append(f"{node.name()}:{len(node.next_functions)}")
        for following, _ in node.next_functions:
            if following is not None and id(following) not in seen:
                seen.add(id(following))
                nodes.append(following)
                waiting.append(following)
    return f"{zlib.crc32(' '.join(names).encode()):08x}", len(nodes)
