"""A notebook as a script: the text of its code cells, row by row what its findings count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lightlint.confirm.launch.target import CommandError
from lightlint.sources.load import load
from lightlint.sources.source import Source, UnreadableError


def as_script(notebook: Path, folder: Path) -> Path:
    """Write a notebook's code into a folder as a script of the same name, without its magics.

    Raises:
        CommandError: it cannot be read, or a cell is no Python.
        OSError: the script cannot be written.
    """
    try:
        source = load(notebook)
    except UnreadableError as error:
        raise CommandError(f"{notebook}: {error}") from error
    if source.broken:
        offset, message = source.broken[0]
        cell = source.cell_at(offset)
        raise CommandError(f"{notebook}: cell {cell.number if cell else '?'}: {message}")
    script = folder / f"{notebook.stem}.py"
    script.write_text("".join(_pieces(source)), encoding="utf-8", newline="")
    return script


def _pieces(source: Source) -> Iterator[str]:
    """The text with `None` in the place of each magic, in as many rows."""
    position = 0
    for start, end in source.masked:
        yield source.text[position:start]
        hidden = source.text[start:end]
        yield "None" + "\n" * (len(hidden.splitlines()) - 1) if hidden.strip() else hidden
        position = end
    yield source.text[position:]
