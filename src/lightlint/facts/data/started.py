"""What people wrote of how a project's programs are started: whether as one process each, and whether on Linux alone."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from lightlint.facts.data.launches import SHELL_SCRIPTS, documents

_PAGES = SHELL_SCRIPTS | {".md", ".rst"}
_NOTES = frozenset((".txt",))  # pages only where they have commands: else requirements, vocabularies, data
_COMMAND = r"(?:^|[\s`$>!(\"'])(?:python|py)[\d.]*(?:\.exe)?\s+(?:-[a-zA-Z]+\s+)*[\"']?"
_STARTS = re.compile(_COMMAND + r"[\w./-]+\.py\b", re.MULTILINE)
_COMMANDS = re.compile(r"\bpython[\d.]*\s")
# A launcher, or several processes or devices. A word within another is none, as `nproc` in `@inproceedings`, and neither are
# other senses of a word: what a licence is distributed under, `make -j$(nproc)`, one GPU, `V100 GPU`, a parallel corpus.
_SEVERAL = re.compile(
    r"""
    torchrun | (?<![a-z])(?:ddp|fsdp|deepspeed|srun|mpirun|mpiexec)(?![a-z]) | \bhorovod | \baccelerate[ ]+(?:launch|config)
    | (?<![a-z(`])nprocs?(?![a-z]) | local[_-]?rank | world[_-]?size
    | \.spawn\( | \bmp[_.]spawn | spawn(?:s|ed|ing)?[ ]+(?:\S+[ ]+){0,2}process
    | (?<!ly[ ])distributed(?!\s+(?:under|in[ ]the[ ]hope|on[ ]an?\b|by|as|with|without|to|via|representation|word))
    | (?:data|model|tensor|pipeline)[ _-]?parallel | --[\w-]*parallel | parallel(?:ly)?[ ]+(?:training|on|across|over|process)
    | \b(?:multi|multiple|several|two|four|eight|many|all)[ -]?gpus?\b | (?<![\w.])(?:[2-9]|[1-9]\d)[ -]?gpus?\b
    | \bgpus\b(?![ =:]+["']?(?:all\b|(?:[01]|device=\d)\b(?!,)))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_REFERENCE = re.compile(r"^[ \t>]*@[a-z]+\s*\{[^\n]*(?:\n(?![ \t>]*(?:```|@|\}))[^\n]*)*", re.IGNORECASE | re.MULTILINE)
_LINUX_ALONE = re.compile(
    r"""
    \blinux[ -]only\b | \bonly[ ](?:\w+[ ]){0,3}(?:on|for)[ ]linux\b | \bwindows[ ]is[ ]not[ ](?:\w+[ ])?supported\b
    | (?:n't|\b(?:not|cannot|never))[ ](?:\w+[ ]){0,2}(?:run|work|support\w*)[ ](?:\w+[ ]){0,2}windows\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ON = re.compile(r"[\\^`][ \t]*\n")


class Documents:
    """What the scripts and pages of a project say of how to start its programs.

    Args:
        root: the project's folder.
    """

    def __init__(self, root: Path) -> None:
        pages, notes = documents(root, _PAGES, _NOTES)
        self._texts = [_REFERENCE.sub("", text) for text in (*pages, *filter(_STARTS.search, notes))]

    def starts_alone(self, program: Path) -> bool:
        """Whether a program is started as one process only: by all texts that start it, or else by all that there are, none of
        which speaks of several processes or devices then."""
        named = re.compile(rf"(?<![\w.-])(?P<path>[\w./${{}}-]*/)?{re.escape(program.name)}(?![\w-])")
        own = [text for text in self._texts if program.name in text and _starts(text, named, program.parent)]
        return _tell_of_one(own) if own else self._all_tell_of_one

    @cached_property
    def name_linux_alone(self) -> bool:
        """Whether a text says that the project is for Linux only, or not for Windows."""
        return any(map(_LINUX_ALONE.search, self._texts))

    @cached_property
    def _all_tell_of_one(self) -> bool:
        return _tell_of_one(self._texts)


def _starts(text: str, named: re.Pattern[str], place: Path) -> bool:
    """Whether a line of a text starts a program of a folder: with Python, or with what starts several processes."""
    for line in _ON.sub(" ", text).splitlines():
        started = named.search(line)
        starts = _COMMANDS.search(line) or _SEVERAL.search(line)
        if started is not None and starts and _leads_to(started["path"] or "", place):
            return True
    return False


def _tell_of_one(texts: list[str]) -> bool:
    """Whether texts start a program, and none speaks of several processes or devices."""
    return any(map(_STARTS.search, texts)) and not any(map(_SEVERAL.search, texts))


def _leads_to(folder: str, place: Path) -> bool:
    """Whether a folder that a command names may be a program's, from wherever it is started."""
    named = [part for part in folder.split("/") if part not in {"", ".", ".."} and "$" not in part]
    return not named or list(place.parts[-len(named) :]) == named
