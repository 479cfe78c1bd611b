"""Commands run in a fork of the tests' own process, which has imported already what a new process would import first.

All else is as in a process of its own: streams, exit status, working directory, environment, and what it remembers ends
with it. What a process imports, and what the interpreter itself does at its start or end, needs a real one.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NoReturn

from checkout import environment_of

from lightlint.linting.gate import checked_pages, met_by
from lightlint.linting.walk import check_class
from lightlint.text import Text


def run_forked(module: str, *arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `checkout.run_module` does."""
    done = forked(module, *map(str, arguments), cwd=cwd, environment=environment_of(**environment))
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def forked(
    module: str, *arguments: str | bytes, cwd: Path, environment: Mapping[str, str], data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m MODULE` with nothing but an environment, and `data` as its standard input."""
    _import_what_lints()
    words = [os.fsdecode(argument) for argument in arguments]
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(data)
        given.seek(0)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # xdist's worker has a thread
            child = os.fork()
        if child == 0:
            _become(module, words, cwd, environment, (given, out, err))
        _, status = os.waitpid(child, 0)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read())
    return subprocess.CompletedProcess([module, *words], os.waitstatus_to_exitcode(status), *texts)


@cache
def _import_what_lints() -> None:
    """Import once what each fork would import, and make what is made once in a process."""
    met_by(Text(""), frozenset())
    for page in checked_pages():
        check_class(page)


def _become(
    module: str, arguments: list[str], cwd: Path, environment: Mapping[str, str], streams: tuple[IO[bytes], ...]
) -> NoReturn:
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [module, *arguments]
        sys.modules.pop(f"{module}.__main__", None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
