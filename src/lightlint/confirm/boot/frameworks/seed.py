"""One seed for all runs that are compared, and the operations that torch cannot make deterministic."""

from __future__ import annotations

import random
import re
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.guard import quiet

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_SAID = re.compile(r"(?P<operation>\S+) does not have a deterministic implementation")


def install(session: Session) -> None:
    """Seed each source of random numbers once it is there, before the program's next line."""
    seed = session.plan.seed
    if seed is not None:
        random.seed(seed)
        session.on_import("seed", "torch", lambda torch: torch.manual_seed(seed))
        session.on_import("seed", "numpy", lambda numpy: numpy.random.seed(seed % 2**32))
    if session.plan.deterministic:
        session.on_import("seed", "torch", lambda torch: _name_operations(session, torch))


def _name_operations(session: Session, torch: ModuleType) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    warnings.filterwarnings("always", message=".*does not have a deterministic implementation")
    show = warnings.showwarning

    def showwarning(
        message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        said = _SAID.search(str(message))
        if said is None:
            show(message, category, filename, lineno, file, line)
            return
        with quiet():
            session.record.emit("nondeterministic", operation=said["operation"], file=filename, line=lineno)

    warnings.showwarning = showwarning
