"""`lightlint clean`: remove the cache."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lightlint.cache.folder import NAME, clean, folder_of
from lightlint.config.options import SettingsError
from lightlint.config.settings import load


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status.

    Raises:
        SettingsError: the settings, beside which the cache is, cannot be used.
    """
    parser = argparse.ArgumentParser(prog="lightlint clean", description="Remove the cache.", allow_abbrev=False)
    parser.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help=f"the cache (default: {NAME} beside the settings)"
    )
    folder = folder_of(parser.parse_args(arguments).cache_dir, load())
    try:
        removed = clean(folder)
    except OSError as error:
        raise SettingsError(f"{folder}: {error.strerror}") from error
    sys.stdout.write(f"removed {folder}\n" if removed else f"no cache at {folder}\n")
    return 0
