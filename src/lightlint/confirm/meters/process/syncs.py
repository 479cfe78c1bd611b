"""How often the program waits for a GPU around a finding's lines: what torch itself calls a synchronizing operation.

torch warns of each one in its debug mode (`torch.cuda.set_sync_debug_mode("warn")`): copies to the CPU, `item()`, printing,
`nonzero`. `torch.cuda.synchronize()` and waits of NCCL are not among them (its documentation). The warnings are counted and
not shown.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import is_quiet
from lightlint.confirm.meters.process.memory import has_started

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_MESSAGE = "called a synchronizing CUDA operation"


def install(session: Session) -> None:
    """Switch torch's debug mode on once the program uses a GPU, and compare the count around the findings' lines."""
    syncs = _Syncs()
    session.snapshots["syncs"] = lambda _frame: syncs.seen()
    session.on_import("syncs", "torch", syncs.watch)


class _Syncs:
    """The waits so far."""

    def __init__(self) -> None:
        self._count = 0

    def watch(self, torch: ModuleType) -> None:
        cuda: Any = torch.cuda
        show: Any = warnings._showwarnmsg  # type: ignore[attr-defined]

        def shown(message: Any) -> None:
            if not str(message.message).startswith(_MESSAGE):
                show(message)
            elif not is_quiet():
                self._count += 1

        warnings._showwarnmsg = shown  # type: ignore[attr-defined]
        if torch.backends.cuda.is_built():
            cuda._lazy_call(lambda: cuda.set_sync_debug_mode("warn"))  # to set it now would start the driver

    def seen(self) -> dict[str, Any]:
        """The count, None where no GPU is in use; the program's own filters are kept from hiding what is counted."""
        if not has_started():
            return {"waits": None}
        if not warnings.filters or getattr(warnings.filters[0][1], "pattern", None) != _MESSAGE:
            warnings.filterwarnings("always", message=_MESSAGE)
        return {"waits": self._count}
