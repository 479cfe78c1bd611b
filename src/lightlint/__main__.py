"""The `lightlint` command; it imports nothing before it must, for a warm run is mostly imports."""

from __future__ import annotations

import gc
import os
import sys


def main() -> int:
    """Run the command line of this process and return its exit status."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _print_version():
        return 0
    said = _said_before(sys.argv[1:])
    if said is not None:
        return said
    from lightlint.memo.compiled import kept_code, save

    gc.disable()  # a run gives its memory back now and then by itself
    with kept_code("command"):
        from lightlint.cli.main import run_command
    try:
        return run_command(sys.argv[1:])
    finally:
        save()
        gc.freeze()  # else Python looks at all that there is once more before it ends


def _said_before(arguments: list[str]) -> int | None:
    """Say what the same run said before, where all is as it was, and return its exit status."""
    if sys.stdout is None or not hasattr(sys.stdout, "reconfigure"):
        return None
    from lightlint.cache.whole import recall

    found = recall(arguments)
    if found is None:
        return None
    text, status = found
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader that went away; at its exit Python would complain of what it could not write
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    return status


def _print_version() -> bool:
    """Print it without an argument parser; False where standard output is closed, which `run_command` deals with."""
    from lightlint import __version__

    try:
        sys.stdout.write(f"lightlint {__version__}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
