"""The companion inside a program: a Lightning callback, and a context manager around a raw loop.

Nothing is cut and nothing is sent elsewhere: the program runs as its author wrote it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lightlint.config.settings import load as load_settings
from lightlint.confirm import plan as plans
from lightlint.confirm import records
from lightlint.confirm.boot.exits import tell_exception
from lightlint.confirm.boot.frameworks.callback import make_callback
from lightlint.confirm.boot.session import current
from lightlint.confirm.boot.start import start, stop
from lightlint.confirm.claims import Suspicion, meters, suspicions, targets
from lightlint.confirm.judge import judge, unnamed
from lightlint.confirm.observed import observe
from lightlint.confirm.reports import text
from lightlint.confirm.reports.report import Judged, Report

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_SHARED = "LIGHTLINT_COMPANION"  # environment variable: where the ranks that this process starts record
_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


class Companion:
    """Watches the training of this process and says at its end whether lightlint's findings are real.

    As a callback, `Trainer(callbacks=[Companion()])`; around a raw loop, `with Companion(): train()`. Under
    `lightlint confirm` it does nothing: the command watches already.

    Args:
        script: the file to lint with the modules it imports; the program's main script where None.
        quiet: whether to print no report; `report` holds it.

    Attributes:
        report: what was found and how it was judged, on rank 0 once the training is over; None before.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance that Lightning takes for a callback, where Lightning is imported: it asks for its own base class."""
        package = next((name for name in _PACKAGES if name in sys.modules), None)
        if package is None or cls is not Companion:
            return super().__new__(cls)
        made: type[Self] = type("Companion", (cls, make_callback(package)), {})
        return object.__new__(made)

    def __init__(self, script: str | Path | None = None, *, quiet: bool = False) -> None:
        self.report: Report | None = None
        self._script = Path(script) if script is not None else _main_script()
        self._quiet = quiet
        self._session: Session | None = None
        self._found: tuple[Suspicion, ...] = ()
        self._directory: Path | None = None
        self._owns = False
        if current() is None:
            self._directory, self._owns = _directory()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled for `ddp_spawn`: the rank makes its own."""
        return Companion, (self._script,)

    def __enter__(self) -> Self:
        """Begin to watch."""
        if self._session is None and self._directory is not None and current() is None:
            self._found = suspicions(self._script, load_settings({}, file=None, isolated=False)) if self._script else ()
            self._session = start(self._plan(self._directory))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Stop watching, judge and report; an exception goes on its way."""
        if self._session is None or self._directory is None:
            return
        if error is not None:
            tell_exception(self._session, error)
            self._session.reason = "exception"
        stop(self._session)
        self._session = None
        if self._owns:
            self._finish(self._directory, raised=error is not None)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Lightning's hook: begin."""
        self.__enter__()
        super().setup(trainer, pl_module, stage)  # type: ignore[misc]

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Lightning's hook: the training is over."""
        super().teardown(trainer, pl_module, stage)  # type: ignore[misc]
        self.__exit__(None, None, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Lightning's hook: the training failed."""
        super().on_exception(trainer, pl_module, exception)  # type: ignore[misc]
        self.__exit__(type(exception), exception, exception.__traceback__)

    def _plan(self, directory: Path) -> plans.Plan:
        return plans.Plan(str(directory), str(directory), targets(self._found), meters(self._found), plans.NEVER)

    def _finish(self, directory: Path, *, raised: bool) -> None:
        run = replace(records.read(directory), ended="raised" if raised else "finished")
        observed = observe(run)
        verdicts = judge((each.claim for each in self._found), run, observed=observed)
        judged = tuple(map(Judged, (each.finding for each in self._found), verdicts))
        command = shlex.join(["python", *sys.argv])
        told = unnamed(observed, (each.claim for each in self._found), verdicts)
        self.report = Report(command, f"lightlint confirm -- {command}", run, judged, told)
        shutil.rmtree(directory, ignore_errors=True)
        if not self._quiet:
            sys.stderr.write(text.render(self.report))


def _main_script() -> Path | None:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(path) if path else None


def _directory() -> tuple[Path, bool]:
    """Where this process records, and whether it is the one that judges: ranks share the directory of the first."""
    shared = os.environ.get(_SHARED)
    if shared:
        return Path(shared), False
    group = os.environ.get("TORCHELASTIC_RUN_ID")
    if group and os.environ.get("RANK") is not None:
        name = f"lightlint-companion-{group}-{os.environ.get('MASTER_PORT', '')}"
        directory = Path(tempfile.gettempdir()) / name
        directory.mkdir(exist_ok=True)
        return directory, os.environ["RANK"] == "0"
    directory = Path(tempfile.mkdtemp(prefix="lightlint-companion-"))
    os.environ[_SHARED] = str(directory)
    return directory, True
