"""The memory in use after each optimizer step: of the process, and of the CUDA allocator where there is one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_STATM = Path("/proc/self/statm")


def install(session: Session) -> None:
    """Look after each update."""

    @session.guard("usage")
    def look(_optimizer: Any) -> None:
        session.record.emit("memory", rss=_resident(), allocated=_allocated())

    session.after_update.append(look)


def _resident() -> int | None:
    """Bytes of the process in memory, None where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _allocated() -> int | None:
    """Bytes that tensors hold on the current GPU, None where CUDA was not used."""
    cuda = sys.modules.get("torch.cuda")
    return int(cuda.memory_allocated()) if cuda is not None and cuda.is_initialized() else None
