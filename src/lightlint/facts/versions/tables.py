"""The tables of `data/`: TOML, read when first asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from lightlint.memo.kept import derived


@cache
def table(name: str) -> dict[str, Any]:
    """A table by the name of its file."""
    file = Path(__file__).parents[2] / "data" / f"{name}.toml"

    def parsed() -> dict[str, Any]:
        import tomllib

        return tomllib.loads(file.read_text("utf-8"))

    found: dict[str, Any] = derived(name, [file], parsed)
    return found
