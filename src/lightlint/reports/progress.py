"""A progress bar on stderr for runs that last, drawn by rich once a second has gone by."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

_PATIENCE = 1.0  # seconds without a bar


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for (files done, files in all), or None where no terminal reads stderr or no bar is wanted."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    update: Callable[[int, int], None] | None = None
    with ExitStack() as bar:

        def advance(done: int, total: int) -> None:
            nonlocal update
            if update is None and time.monotonic() - began > _PATIENCE:
                update = bar.enter_context(_drawn(total))
            if update is not None:
                update(done, total)

        yield advance


@contextmanager
def _drawn(total: int) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, total: progress.update(task, completed=done, total=total)
