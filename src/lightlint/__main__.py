"""The `lightlint` command; it imports nothing before it must, for a warm run is mostly imports."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process and return its exit status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from lightlint import __version__

        sys.stdout.write(f"lightlint {__version__}\n")
        return 0
    from lightlint.cli import run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
