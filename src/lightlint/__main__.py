"""The `lightlint` command; it imports nothing before it must, for a warm run is mostly imports."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process and return its exit status."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _print_version():
        return 0
    from lightlint.compiled import kept_code, save

    with kept_code("command"):
        from lightlint.cli import run_command
    try:
        return run_command(sys.argv[1:])
    finally:
        save()


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
