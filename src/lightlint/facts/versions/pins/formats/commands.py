"""What the commands of a text install: a Dockerfile, a script, a CI workflow, a README."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lightlint.facts.versions.pins.formats.requirement_files import included
from lightlint.facts.versions.pins.formats.variables import Variables
from lightlint.facts.versions.pins.pin import Kind, Pin, canonical, is_pinned, pin_of, pip_pins, wheels_pins
from lightlint.facts.versions.requirements import Requirement, parse_requirement

_TOOL = re.compile(r"(?:.*/)?(?:pip[\d.]*|conda|mamba|micromamba|uv|poetry|pdm|pipenv|pixi|pipx)(?:\.exe)?$")
_CONDA = re.compile(r"conda|mamba")
_INSTALLS = re.compile(r"(?:pip|conda|mamba|uv|poetry|pdm|pixi).*(?:install|add|create|update|download|wheel|inject)")
_VERBS = {"install", "add", "create", "update", "download", "wheel", "inject"}
_FILES = {"-r", "--requirement", "-c", "--constraint", "--file", "-f", "--find-links"}
_VALUED = re.compile(r"-{1,2}(?:[nptif]|name|prefix|target|index-url|extra-index-url|channel|channels|platform)$")
_WORD = re.compile(r"""(?:[^\s"';&|]|"[^"]*"|'[^']*')+|&&|\|\||[;&|]""")
_SEPARATORS = {"&&", "||", ";", "|", "&"}
_EXEC_FORM = re.compile(r"""(?:RUN|CMD)\s*\[(.*)\]\s*$""")
_SPACED_USE = re.compile(r"\$\{\{\s*([^}\s]+)\s*\}\}")
_MOST_MEANINGS = 16


@dataclass(frozen=True, slots=True)
class Line:
    """A line with those that continue it: its text, and the rows (from 1) with what stands in them."""

    text: str
    rows: tuple[tuple[int, str], ...]

    def row_of(self, word: str) -> int:
        """The row where a word stands."""
        return next((row for row, text in self.rows if word in text), self.rows[0][0])


def lines_of(text: str) -> Iterator[Line]:
    r"""The lines of a shell text, those that end in a backslash (or PowerShell's or cmd's sign) with what follows.

    A comment between them is none of it, as in a Dockerfile.
    """
    rows: list[tuple[int, str]] = []
    for row, line in enumerate(text.splitlines(), 1):
        if rows and line.lstrip().startswith("#"):
            continue
        open_end = line.rstrip().endswith(("\\", "`", "^")) and not line.rstrip().endswith("```")
        rows.append((row, line.rstrip().rstrip("\\`^") if open_end else line))
        if not open_end:
            yield Line(" ".join(part for _, part in rows), tuple(rows))
            rows = []
    if rows:
        yield Line(" ".join(part for _, part in rows), tuple(rows))


def line_pins(file: Path, line: Line, variables: Variables, kind: Kind) -> Iterator[Pin]:
    """The pins of the install commands in one line."""
    if not _INSTALLS.search(line.text):
        return
    for words in _commands(line.text):
        tool = next((place for place, word in enumerate(words) if _TOOL.match(word)), None)
        verb = next((place for place, word in enumerate(words) if word in _VERBS), None)
        if tool is None or verb is None or verb < tool:
            continue
        for address in words[verb + 1 :]:
            if "download.pytorch.org" in address:  # behind an option: `--index-url`
                found_at = wheels_pins(file, line.row_of(address), address)
                yield from (replace(pin, kind=min(pin.kind, kind)) for pin in found_at)
        pins_of = pin_of if _CONDA.search(words[tool]) else pip_pins
        for word in _given(words[verb + 1 :]):
            row = line.row_of(word.text)
            for meaning in sorted(variables.meanings(word.text))[:_MOST_MEANINGS]:
                found = _from_file(file, meaning) if word.names_file else _word_pins(file, row, meaning, pins_of)
                for pin in (*found, *wheels_pins(file, row, meaning)):
                    yield Pin(
                        pin.name, pin.specifier, pin.file, pin.row, pin.locked, pin.conditional, min(pin.kind, kind)
                    )


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    names_file: bool = False


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command on a line, without quotes."""
    if exec_form := _EXEC_FORM.search(text):
        text = " ".join(re.findall(r'"([^"]*)"', exec_form[1]))
    words: list[str] = []
    for match in _WORD.finditer(_SPACED_USE.sub(r"${{\1}}", text)):
        if match.group() in _SEPARATORS:
            yield words
            words = []
            continue
        word = re.sub(r"[\"']", "", match.group())
        if " " in word and re.search(r"\b(?:install|add)\b", word):  # bash -c "pip install ..."
            yield from _commands(word)
        word = word.lstrip("`!%(").rstrip("`),].")
        words.append(word.rstrip("}") if word.count("}") > word.count("{") else word)
    yield words


def _given(words: list[str]) -> Iterator[_Word]:
    """The arguments of an install command that name packages or files of requirements."""
    option = ""
    for word in words:
        if word.startswith("#"):
            return
        if option:
            if option in _FILES:
                yield _Word(word, names_file=True)
            option = ""
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            if value and name in _FILES:
                yield _Word(value, names_file=True)
            elif name in _FILES or _VALUED.match(name):
                option = "" if value else name
            elif re.fullmatch(r"-\w+r", word):  # -qr
                option = "-r"
        else:
            yield _Word(word)


def _from_file(file: Path, name: str) -> Iterator[Pin]:
    """The pins of a requirements file that a command names, as seen from the file or from a folder above it."""
    if name.endswith((".txt", ".in", ".pip")) and "$" not in name and not name.startswith("http"):
        name = re.sub(r"^(?:\./|/\w+/)+", "", name)  # /app/requirements.txt of the image is the project's
        for folder in file.parents[:3]:
            if (folder / name).is_file():
                yield from included(folder / name, file)
                return


def _word_pins(
    file: Path, row: int, word: str, pins_of: Callable[[Path, int, Requirement | None], Iterator[Pin]]
) -> Iterator[Pin]:
    """The pin of one argument, as pip, conda (`pytorch=1.10=py3`, `pytorch::pytorch`) or Poetry (`torch@^1.10`) takes it."""
    word = word.rpartition("::")[2] if "::" in word else word
    if "$" in word or "{" in word:
        return
    if found := re.match(r"([A-Za-z][\w.-]*)@([\^~]?\d\S*)$", word):
        if is_pinned(canonical(found[1])):
            yield Pin(canonical(found[1]), found[2], file, row)
        return
    if found := re.match(r"([A-Za-z][\w.-]*)=(\d[^=\s]*)(?:=\S*)?$", word):
        if is_pinned(canonical(found[1])):
            yield Pin(canonical(found[1]), f"={found[2]}", file, row)
        return
    if ("://" in word or word.endswith(".whl")) and "torch" not in word and "git+" not in word:
        return
    yield from pins_of(file, row, parse_requirement(word))
