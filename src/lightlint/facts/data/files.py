"""Files of settings that a program names or is launched with: JSON and YAML beside its code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.project.yaml_text import read_yaml
from lightlint.memo.looked import looked

_MOST_BYTES = 50_000  # more is data, no settings
_MOST_ABOVE = 3
_MOST_LAUNCHES = 20
_LAUNCHED_BY = re.compile(r"^distributed_type:\s*['\"]?(\w+)", re.MULTILINE)
_SEVERAL_NODES = re.compile(
    r"--n(?:um_)?nodes[= ]+(?:[2-9]|[1-9]\d|[\"'{]*\$)|--num_machines[= ]+[2-9]|--node[_-]rank[= ]+(?:[1-9]|[\"'{]*\$)"
    r"|^#SBATCH\s+(?:--nodes=|-N\s*)(?:[2-9]|[1-9]\d)",
    re.MULTILINE,
)
_LAUNCHES = re.compile(
    r"\btorchrun\b|\btorch\.distributed\.(?:launch|run)\b|^#SBATCH\s+(?:--nodes=|-N\s*)1\b", re.MULTILINE
)
_STARTS = re.compile(r"(?:^|[\s`$>])python[\d.]*\s+(?:-\w+\s+)*[\w./-]+\.py\b")
_SEVERAL_PROCESSES = re.compile(
    r"torchrun|distributed|\bddp\b|fsdp|accelerate|deepspeed|horovod|mpirun|mpiexec|\bsrun\b|nproc|spawn|local[_-]?rank|world[_-]?size"
    r"|(?:multi|multiple|several|two|four|eight|many|all|\d)[ -]?gpus?\b|\bgpus\b|parallel",
    re.IGNORECASE,
)
_MOST_PAGES = 80
_ENGINES = {"DEEPSPEED", "FSDP", "MEGATRON_LM"}


def settings_in(name: str, near: Path, root: Path) -> tuple[Path, object] | None:
    """The file that a program in a folder opens by a relative name, as it is started from there or from above, and what it
    says: dicts, lists, texts, numbers, flags, None, and `UNKNOWN`."""
    if not name.endswith((".json", ".yaml", ".yml")) or Path(name).is_absolute():
        return None
    for folder in _folders(near, root):
        text = _text(folder / name)
        if text:
            return folder / name, _read(text, is_json=name.endswith(".json"))
    return None


def _folders(near: Path, root: Path) -> Iterator[Path]:
    yield near
    for folder in [*near.parents][:_MOST_ABOVE] if near != root else []:
        yield folder
        if folder == root:
            break


def _text(path: Path) -> str:
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


def is_launched_with_engine(folder: Path) -> bool:
    """Whether all files beside a program that `accelerate launch` reads start an engine which shards what is trained."""
    texts = _texts(folder, (".yaml", ".yml"))
    launched = [match[1].upper() for text in texts if (match := _LAUNCHED_BY.search(text)) is not None]
    return bool(launched) and _ENGINES.issuperset(launched)


def is_launched_on_nodes(near: Path, root: Path) -> bool | None:
    """Whether a script or page beside a program, or else above it, starts it on several nodes; None where none starts it with a
    launcher."""
    for folder in _folders(near, root):
        texts = _texts(folder, (".sh", ".slurm", ".sbatch", ".md"))
        if any(_SEVERAL_NODES.search(text) is not None for text in texts):
            return True
        if any(_LAUNCHES.search(text) is not None for text in texts):
            return False
    return None


def documents_one_process(root: Path) -> bool:
    """Whether the scripts and pages of a project start its programs, and none speaks of several processes or devices."""
    suffixes = (".sh", ".slurm", ".sbatch", ".md", ".rst", ".txt", ".bat")
    folders = [root, *_inner(root)]
    folders += [inner for each in folders[1:] for inner in _inner(each)]
    texts = [text for each in folders[:_MOST_PAGES] for text in _texts(each, suffixes)]
    return any(map(_STARTS.search, texts)) and not any(map(_SEVERAL_PROCESSES.search, texts))


def _inner(folder: Path) -> list[Path]:
    looked(folder)
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []


def _texts(folder: Path, suffixes: tuple[str, ...]) -> list[str]:
    looked(folder)
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix in suffixes)
    except OSError:
        return []
    return [_text(each) for each in files[:_MOST_LAUNCHES]]
