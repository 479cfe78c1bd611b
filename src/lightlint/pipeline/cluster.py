"""The files of a run on a Dask cluster (`--jobs dask:ADDRESS`), whose machines see them under the same paths."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lightlint import __version__
from lightlint.config.options import SettingsError
from lightlint.config.settings import Settings
from lightlint.facts.project.project import Projects
from lightlint.linting.batch import One, outcomes, shares
from lightlint.results import Result

_SHARES = 4  # for each thread of the cluster, so that a slow share keeps few waiting
_LEAST = 1_000_000  # bytes of source that keep a process busy for longer than it takes to start
_TIMEOUT = 10  # seconds to wait for the scheduler


def lint_on(
    address: str, files: Sequence[Path], sizes: Sequence[int], settings: Settings, one: One
) -> Iterator[tuple[int, Result]]:
    """Results with the numbers of their files, as they are done.

    Args:
        address: of the scheduler, such as `tcp://10.0.0.1:8786`.
        files: what to lint.
        sizes: their bytes.
        settings: those of the run.
        one: how a file is linted.

    Raises:
        SettingsError: Dask is not installed, the scheduler cannot be reached, or a worker has another lightlint.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise SettingsError("--jobs dask: needs Dask: pip install 'lightlint[dask]'") from error
    try:
        client = Client(address, timeout=_TIMEOUT)
    except (OSError, ValueError) as error:
        raise SettingsError(f"--jobs dask: no scheduler at {address}") from error
    with client:
        others = {worker: found for worker, found in client.run(_version).items() if found != __version__}
        if others:
            worker, found = next(iter(others.items()))
            raise SettingsError(f"--jobs dask: {worker} has lightlint {found or 'not installed'}, not {__version__}")
        most = min(len(files), _SHARES * sum(client.ncores().values()), 1 + sum(sizes) // _LEAST)
        parts = [[(number, files[number]) for number in part] for part in shares(sizes, most)]
        tasks = [pickle.dumps((part, settings, one)) for part in parts]
        futures = client.map(_share, tasks, folder=str(Path.cwd()), pure=False)
        for _, results in as_completed(futures, with_results=True):
            yield from pickle.loads(results)


def _version() -> str:
    """The version that a worker has, empty where it has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lightlint")
    except PackageNotFoundError:
        return ""


def _share(task: bytes, folder: str) -> bytes:
    """What a worker does, in a process of its own: the others of its threads may lint, too, and it has its own folder."""
    command = [sys.executable, "-c", "from lightlint.pipeline.cluster import lint_share; lint_share()"]
    done = subprocess.run(command, input=task, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    return done.stdout


def lint_share() -> None:
    """Lint what standard input tells, and write the results: pickles of what `lint_on` sends and awaits."""
    part, settings, one = pickle.load(sys.stdin.buffer)
    done = outcomes([path for _, path in part], settings, one, Projects())
    results = [(number, outcome.result) for (number, _), outcome in zip(part, done, strict=True)]
    pickle.dump(results, sys.stdout.buffer)
