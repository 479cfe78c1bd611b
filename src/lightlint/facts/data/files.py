"""Files of settings that a program names or is launched with: JSON and YAML beside its code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.project.yaml_text import read_yaml
from lightlint.memo.looked import looked

_MOST_BYTES = 50_000  # more is data, no settings
_MOST_ABOVE = 3


def settings_in(name: str, near: Path, root: Path) -> tuple[Path, object] | None:
    """The file that a program in a folder opens by a relative name, as it is started from there or from above, and what it
    says: dicts, lists, texts, numbers, flags, None, and `UNKNOWN`."""
    if not name.endswith((".json", ".yaml", ".yml")) or Path(name).is_absolute():
        return None
    for folder in folders_above(near, root):
        text = text_at(folder / name)
        if text:
            return folder / name, _read(text, is_json=name.endswith(".json"))
    return None


def folders_above(near: Path, root: Path) -> Iterator[Path]:
    """The folder of a program and a few above it, up to the root."""
    yield near
    for folder in [*near.parents][:_MOST_ABOVE] if near != root else []:
        yield folder
        if folder == root:
            break


def text_at(path: Path) -> str:
    """What a file holds that people wrote; empty for one that cannot be read, or is large."""
    looked(path)
    try:
        return path.read_text(encoding="utf-8") if path.is_file() and path.stat().st_size <= _MOST_BYTES else ""
    except (OSError, ValueError):
        return ""


def _read(text: str, *, is_json: bool) -> object:
    if not is_json:
        return read_yaml(text)
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return UNKNOWN
    return found
