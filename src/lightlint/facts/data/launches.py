"""How the scripts and pages of a project start its programs: on how many nodes, by which launcher."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lightlint.facts.data.files import folders_above, text_at
from lightlint.memo.looked import looked

# What shells read, and what hands a script to a queue: Slurm, PBS, LSF, Grid Engine, HTCondor and others, as people name them.
SHELL_SCRIPTS = frozenset(
    (
        *(".sh", ".bash", ".zsh", ".ksh", ".csh", ".tcsh", ".fish", ".ps1", ".bat", ".cmd", ".source"),
        *(".slurm", ".sbatch", ".sbat", ".sl", ".slr", ".slm", ".slrm", ".srun", ".batch", ".submit", ".sub"),
        *(".pbs", ".qsub", ".msub", ".bsub", ".lsf", ".sge", ".condor", ".cobalt", ".job", ".jobscript"),
    )
)
_MOST_LAUNCHES = 20
_LAUNCHED_BY = re.compile(r"^distributed_type:\s*['\"]?(\w+)", re.MULTILINE)
_SEVERAL_NODES = re.compile(
    r"--n(?:um_)?nodes[= ]+(?:[2-9]|[1-9]\d|[\"'{]*\$(?P<nodes>\{?\w+)?)|--num_machines[= ]+[2-9]"
    r"|--node[_-]rank[= ]+(?:[1-9]|[\"'{]*\$(?P<rank>\{?\w+)?)|^#SBATCH\s+(?:--nodes=|-N\s*)(?:[2-9]|[1-9]\d)",
    re.MULTILINE,
)
_ONE_NODE = re.compile(
    r"(?:torchrun|torch\.distributed\.(?:launch|run))\b[^\n]*?\s--(?:standalone\b|n(?:um_)?nodes[= ]+1\b)"
)
_LAUNCHES = re.compile(
    r"\btorchrun\b|\btorch\.distributed\.(?:launch|run)\b|^#SBATCH\s+(?:--nodes=|-N\s*)1\b", re.MULTILINE
)
_MOST_PAGES = 80
_ENGINES = {"DEEPSPEED", "FSDP", "MEGATRON_LM"}


def is_launched_with_engine(folder: Path) -> bool:
    """Whether all files beside a program that `accelerate launch` reads start an engine which shards what is trained."""
    texts = _texts(folder, frozenset((".yaml", ".yml")))
    launched = [match[1].upper() for text in texts if (match := _LAUNCHED_BY.search(text)) is not None]
    return bool(launched) and _ENGINES.issuperset(launched)


def is_launched_on_nodes(near: Path, root: Path) -> bool | None:
    """Whether a script or page beside a program, in a folder beside, or else above it, starts it on several nodes; None where
    none starts it with a launcher."""
    for folder in folders_above(near, root):
        for told in _told(folder):
            if any(map(_starts_on_nodes, told)):
                return True
            if any(_LAUNCHES.search(text) is not None for text in told):
                return False
    return None


def _told(folder: Path) -> Iterator[list[str]]:
    """What the scripts and pages beside a program say, then what the scripts in the folders beside it do."""
    yield _texts(folder, SHELL_SCRIPTS | {".md"})
    yield [text for inner in _inner(folder)[:_MOST_LAUNCHES] for text in _texts(inner, SHELL_SCRIPTS)]


def _starts_on_nodes(text: str) -> bool:
    """Whether a text tells of several nodes, by a number or by what it does not say itself: `--nnodes $NODES` with `NODES=1`
    is one."""
    return any(not _says_one(found, text) for found in _SEVERAL_NODES.finditer(text))


def _says_one(found: re.Match[str], text: str) -> bool:
    """Whether what stands for the number of nodes, or for the place of one among them, is set to that of a single one."""
    for group, alone in (("nodes", "1"), ("rank", "0")):
        name = (found[group] or "").removeprefix("{")
        given = re.findall(rf"(?m)^\s*(?:export\s+)?{name}=[\"']?([^\s\"'#;]*)", text) if name else []
        if given:
            return set(given) == {alone}
    return False


def documents(root: Path, *kinds: frozenset[str]) -> list[list[str]]:
    """What the files of a project say, up to two folders down, by kinds of endings."""
    folders = [root, *_inner(root)]
    folders += [inner for each in folders[1:] for inner in _inner(each)]
    return [[text for each in folders[:_MOST_PAGES] for text in _texts(each, suffixes)] for suffixes in kinds]


def tells_of_one_node(text: str) -> bool:
    """Whether a program has a command in it that starts it on one node, and none for several."""
    return _ONE_NODE.search(text) is not None and not _starts_on_nodes(text)


def _inner(folder: Path) -> list[Path]:
    looked(folder)
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []


def _texts(folder: Path, suffixes: frozenset[str]) -> list[str]:
    looked(folder)
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix in suffixes)
    except OSError:
        return []
    return [text_at(each) for each in files[:_MOST_LAUNCHES]]
