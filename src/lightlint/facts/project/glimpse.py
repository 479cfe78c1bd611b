"""What an index of a project knows of a file without parsing it: words of note, and those of its import statements."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from pathlib import Path

from lightlint.memo.digest import digest

_IMPORT = re.compile(r"\b(?:from|import)[ \t]+[^\n(#]*(?:\([^)]*\))?")
_WORD = re.compile(r"\w+|\*")
INDEXED = (
    "Trainer", "Fabric", "init_process_group", "LightningCLI", "instantiate", "Accelerator", "DistributedDataParallel",
    "set_device", "automatic_optimization", "training_step", "configure_optimizers", "lr_schedulers",
    "ArgumentParser", "torch.optim", "optim.", "DataLoader", "TrainingArguments",
)  # fmt: skip


def glimpse(words: Sequence[str], imports: Set[str]) -> str:
    """A digest of what an index knows of a file: words of note in it, and those of its imports; empty for one with none."""
    return digest("\n".join([*words, "", *sorted(imports)])) if words else ""


def glimpse_of(data: bytes) -> str:
    """The glimpse of a file that holds some bytes."""
    words = indexed(data)
    return glimpse(words, import_words(data)) if words else ""


def indexed(data: bytes) -> list[str]:
    """The words of note that a file holds, also as a part of other words."""
    return [word for word in INDEXED if word.encode() in data]


def import_words(data: bytes) -> frozenset[str]:
    """The words of a file's import statements, in a notebook's JSON, too."""
    text = data.decode("utf-8", "replace").replace("\\n", "\n")
    return frozenset(_WORD.findall(" ".join(match[0] for match in _IMPORT.finditer(text))))


def bytes_at(path: Path) -> bytes:
    """What a file holds, nothing for one that cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
