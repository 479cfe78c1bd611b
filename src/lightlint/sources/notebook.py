"""Notebooks: code cells joined to one text, and an edited text written back into the JSON it came from."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lightlint.sources import json_spans
from lightlint.sources.magics import Masked, has_blank, has_gap, mask, mask_all, mask_broken, mask_unparsed
from lightlint.sources.source import Cell, ForeignError, Source, UnreadableError

_LFS = b"version https://git-lfs"
_COLAB = re.compile(r'"colab"\s*:\s*\{')
_PYTHON_2 = re.compile(r'"language_info"\s*:\s*\{(?:[^{}]|\{[^{}]*\})*?"version"\s*:\s*"2\.')
_RAN_WITH = re.compile(r'"language_info"\s*:\s*\{(?:[^{}]|\{[^{}]*\})*?"version"\s*:\s*"(3\.\d{1,2})')
_KNOWN = r"(torch(?:vision|audio)?|(?:pytorch[-_])?lightning|transformers|trl|peft|accelerate)"
_INSTALLED = re.compile(rf"(?<=[ \"]){_KNOWN}-(\d+(?:\.\d+)+)")
_SATISFIED = re.compile(rf"Requirement already satisfied: {_KNOWN}\b[^\"\n]*\((\d+(?:\.\d+)+)[^()\"]*\)")
_PUT_ASIDE = re.compile(
    r"#[# ]*[!%] ?(?:pip3?|python3? -m pip|uv pip) install [^\"\\\\]*"
)  # a command that was run once
_PINNED = re.compile(rf"(?<=[ '=]){_KNOWN}==(\d+(?:\.\d+)+)")
_BY_MODULE = {name: name for name in ("torch", "torchvision", "transformers", "trl", "peft", "accelerate", "lightning")}
_BY_MODULE |= {"pl": "pytorch-lightning", "pytorch_lightning": "pytorch-lightning"}
_ASKED = re.compile(rf"\b(?:{'|'.join(_BY_MODULE)})\.__version__")
_ASKED_ANY = re.compile(r"\b(\w+)\.__version__")
_SHOWN = re.compile(r"(?<![\w.])(\d+\.\d+(?:\.\d+)+)(?![\d.]*\d)")
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")  # of a character beyond ASCII
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a code cell's source stands in the raw JSON, and what it says."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NotebookOrigin:
    """A notebook's JSON as read, with the code cells' slots and the text behind each masked range, in order."""

    raw: str
    slots: tuple[_Slot, ...]
    hidden: tuple[str, ...]

    def render(self, source: Source) -> bytes:
        """The notebook with changed cells' sources re-encoded in their own style, and every other byte as it was."""
        parts: list[str] = []
        position = 0
        for slot, text in zip(self.slots, self._cell_texts(source), strict=True):
            if text != slot.text:
                parts += [self.raw[position : slot.start], self._encoded(slot, text)]
                position = slot.end
        return "".join([*parts, self.raw[position:]]).encode("utf-8")

    def _cell_texts(self, source: Source) -> Iterator[str]:
        """The text of each cell with its magics back in place."""
        masks = list(zip(source.masked, self.hidden, strict=True))
        for cell in source.cells:
            parts: list[str] = []
            position = cell.start
            while masks and masks[0][0][0] < cell.end:
                (start, end), hidden = masks.pop(0)
                parts += [source.text[position:start], hidden]
                position = end
            yield "".join([*parts, source.text[position : cell.end]])

    def _encoded(self, slot: _Slot, text: str) -> str:
        """A cell's text as the JSON value it replaces would write it: one string, or a list of a string a line."""
        raw = self.raw[slot.start : slot.end]
        ascii_only = self._is_escaped(raw)
        if raw.startswith('"'):
            return _quoted(text, ascii_only)
        known = {span.text: raw[span.start : span.end] for span in json_spans.strings(raw)}
        lines = [known.get(line) or _quoted(line, ascii_only) for line in text.splitlines(keepends=True)]
        opening, between, closing = self._layout(raw)
        return f"[{opening}{between.join(lines)}{closing}]" if lines else "[]"

    def _is_escaped(self, raw: str) -> bool:
        """Whether characters beyond ASCII are escaped: as the cell does, as the file does, else as Jupyter does."""
        for part in (raw, self.raw):
            if not part.isascii():
                return False
            if _ESCAPED.search(part):
                return True
        return False

    def _layout(self, raw: str) -> tuple[str, str, str]:
        """What stands before, between and behind the strings of a list, taken from other cells where it has too few."""
        own = _list_layout(raw)
        if own and own[1]:
            return own
        others = (_list_layout(self.raw[slot.start : slot.end]) for slot in self.slots)
        opening, between, closing = next((other for other in others if other and other[1]), ("", ", ", ""))
        if own is None:
            return opening, between, closing
        return own[0], f",{own[0]}" if own[0].strip(" ") else between, own[2]


def read_notebook(filename: str, data: bytes) -> Source:
    """The source of a notebook of format 4: its code cells, each followed by a line end.

    A cell with a syntax error is blanked, but for the names it binds, and named in `Source.broken`, unless it leaves a
    blank for students to fill: such a cell is blanked in silence.

    Raises:
        UnreadableError: the bytes are no notebook of format 4, or one of another language than Python.
    """
    raw = _decoded(data)
    slots: list[_Slot] = []
    cells: list[Cell] = []
    pieces: list[str] = []
    masked: list[tuple[int, int]] = []
    hidden: list[str] = []
    pip_lines: list[tuple[int, str]] = []
    broken: list[tuple[int, str]] = []
    at = 0
    is_old = bool(_PYTHON_2.search(raw))  # its `print x` is right: cells that today's Python cannot read are no faults
    for number, slot, is_python in _code_cells(raw):
        piece, fault = _read_cell(slot.text) if is_python else (mask_all(slot.text), None)
        slots.append(slot)
        cells.append(Cell(number, at, at + len(slot.text)))
        pieces.append(piece.text + "\n")
        masked += [(at + start, at + end) for start, end in piece.ranges]
        hidden += [slot.text[start:end] for start, end in piece.ranges]
        pip_lines += [(at + offset, command) for offset, command in piece.commands]
        broken += [(at + fault[0], fault[1])] if fault and not is_old else []
        at += len(slot.text) + 1
    origin = NotebookOrigin(raw, tuple(slots), tuple(hidden))
    return Source(
        filename,
        "".join(pieces),
        origin,
        tuple(cells),
        tuple(masked),
        tuple(pip_lines),
        tuple(broken),
        origin.hidden,
        ran_with(raw),
        installed_in(raw),
        _COLAB.search(raw) is not None,
    )


def ran_with(raw: str) -> str:
    """The Python 3 that a notebook was run with, `3.7`; empty where it does not say so."""
    found = _RAN_WITH.search(raw)
    return found[1] if found else ""


def installed_in(raw: str) -> tuple[str, ...]:
    """What outputs in a notebook, and its install commands in comments, say is installed, as `torch==1.7.1`."""
    return tuple(dict.fromkeys((*_installed(raw), *_printed(raw))))


def _installed(raw: str) -> Iterator[str]:
    for line in _PUT_ASIDE.findall(raw) if "install" in raw else ():
        yield from (f"{name}=={version}" for name, version in _PINNED.findall(line))
    for line in re.findall(r"Successfully installed[^\"]*", raw) if "Successfully installed" in raw else ():
        yield from (f"{name}=={version}" for name, version in _INSTALLED.findall(line))
    if "already satisfied" in raw:
        yield from (f"{name}=={version}" for name, version in _SATISFIED.findall(raw))


def _printed(raw: str) -> Iterator[str]:
    """What cells show that ask packages for their versions, where they show as many as they ask for."""
    if not _ASKED.search(raw):
        return
    try:
        cells = json.loads(raw).get("cells", ())
    except (ValueError, RecursionError, AttributeError):
        return
    for cell in cells:
        asked = _ASKED_ANY.findall(_joined(cell.get("source", "")))
        shown = [version for output in cell.get("outputs", ()) for version in _SHOWN.findall(_text_of(output))]
        if len(asked) == len(shown):
            yield from (
                f"{_BY_MODULE[name]}=={version}"
                for name, version in zip(asked, shown, strict=True)
                if name in _BY_MODULE
            )


def _text_of(output: Mapping[str, Any]) -> str:
    """The plain text of a cell's output."""
    return _joined(output.get("text") or (output.get("data") or {}).get("text/plain") or "")


def _read_cell(text: str) -> tuple[Masked, tuple[int, str] | None]:
    """A cell's masked text, and the offset and message of its syntax error, unless it is there for students to mend."""
    if has_blank(text):
        return mask_broken(text), None
    masked = mask(text)
    fault = _syntax_error(masked.text)
    if fault is None:
        return masked, None
    other = mask_unparsed(text)
    if other:
        return other, None
    indent = re.match(r"\s*?([ \t]+)\S", masked.text)
    if indent and _syntax_error(re.sub(f"(?m)^{indent[1]}", "", masked.text)) is None:
        return mask_all(text), None  # IPython takes an indent off that all lines share; at equal length it cannot go
    return mask_broken(text), None if has_gap(text) else fault


def _syntax_error(text: str) -> tuple[int, str] | None:
    """Offset and message of a cell's syntax error, if neither the interpreter nor libcst takes it."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<cell>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        rows = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
        offset = rows[min(error.lineno or 1, len(rows)) - 1] + max(0, (error.offset or 1) - 1)
        fault = min(offset, len(text)), error.msg
        wrongly_indented = isinstance(error, IndentationError)  # in any Python; libcst lets some of it pass
    except (ValueError, RecursionError, MemoryError) as error:
        return 0, str(error) or type(error).__name__
    else:
        return None
    return None if not wrongly_indented and _is_newer_syntax(text) else fault


def _is_newer_syntax(text: str) -> bool:
    """Whether libcst parses what this interpreter does not."""
    import libcst

    try:
        libcst.parse_module("\n" + text)  # a byte order mark counts as nothing in the first row only
    except Exception:
        return False
    return True


def _decoded(data: bytes) -> str:
    if not data.strip():
        raise ForeignError("skipped: the notebook is empty")  # Jupyter opens it, as a new one
    if data.startswith(_LFS):
        raise ForeignError("skipped: a Git LFS pointer instead of the notebook; `git lfs pull` fetches it")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not a notebook: byte {error.start} is not valid UTF-8") from error


def _code_cells(raw: str) -> Iterator[tuple[int, _Slot, bool]]:
    """Number, slot and whether it is Python, of each code cell.

    Raises:
        UnreadableError: not JSON, not a notebook of format 4, or a notebook of another language.
    """
    try:
        top, cells = _scan_notebook(raw)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error.msg[0].lower()}{error.msg[1:]}, in row {error.lineno}") from error
    except ValueError as error:
        raise UnreadableError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise UnreadableError("not a notebook: its JSON nests too deep") from error
    if "worksheets" in top:
        raise UnreadableError("a notebook of format 3; `jupyter nbconvert --to notebook --inplace` upgrades it")
    if cells is None:
        raise UnreadableError("not a notebook: it has no list of cells")
    language = _language(top.get("metadata"))
    if "python" not in language.lower() and language.lower() != "pyspark":
        raise ForeignError(f"skipped: a notebook of another language ({language})")
    for number, (cell, slot) in enumerate(cells, 1):
        if cell.get("cell_type") == "code" and slot:
            yield number, slot, _is_python(cell.get("metadata"))


def _language(metadata: Any) -> str:
    """The notebook's language by its metadata, as it is spelled there; Python if they name none."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(value, dict) and isinstance(value.get(name), str):
            return str(value[name])
    return "python"


def _is_python(metadata: Any) -> bool:
    """Whether a cell is in the notebook's language; VS Code marks those that are not, and Python at times as plaintext."""
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    return not isinstance(editor, dict) or editor.get("languageId", "python") in ("python", "plaintext")


_ScannedCell = tuple[dict[str, Any], _Slot | None]


def _scan_notebook(raw: str) -> tuple[dict[str, Any], list[_ScannedCell] | None]:
    """The notebook's values save its cells, and its cells with the slots of their sources."""
    top: dict[str, Any] = {}
    cells: list[_ScannedCell] | None = None

    def cell(start: int) -> int:
        assert cells is not None
        scanned, end = _scan_cell(raw, start)
        cells.append(scanned)
        return end

    def member(key: str, start: int) -> int:
        nonlocal cells
        if key == "cells" and raw.startswith("[", start):
            cells = []
            return json_spans.read_array(raw, start, cell)
        top[key], end = json_spans.value(raw, start)
        return end

    start = json_spans.skip(raw, 1 if raw.startswith("\ufeff") else 0)
    if not raw.startswith("{", start):
        json_spans.value(raw, start)
        raise UnreadableError("not a notebook: its JSON is no object")
    end = json_spans.skip(raw, json_spans.read_object(raw, start, member))
    if end != len(raw):
        raise json.JSONDecodeError("Extra data", raw, end)
    return top, cells


def _scan_cell(raw: str, start: int) -> tuple[_ScannedCell, int]:
    values: dict[str, Any] = {}
    slot: _Slot | None = None

    def member(key: str, start: int) -> int:
        nonlocal slot
        values[key], end = json_spans.value(raw, start)
        if key == "source":
            slot = _Slot(start, end, _joined(values[key]))
        return end

    if not raw.startswith("{", start):
        return ({}, None), json_spans.value(raw, start)[1]
    end = json_spans.read_object(raw, start, member)
    return (values, slot), end


def _joined(source: Any) -> str:
    if isinstance(source, str):
        return source
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    raise UnreadableError("not a notebook: a cell's source is neither a string nor a list of strings")


def _list_layout(raw: str) -> tuple[str, str, str] | None:
    """What stands before, between (empty for a single string) and behind the strings of a list that has any."""
    spans = json_spans.strings(raw) if raw.startswith("[") else []
    if not spans:
        return None
    between = raw[spans[0].end : spans[1].start] if len(spans) > 1 else ""
    return raw[1 : spans[0].start], between, raw[spans[-1].end : -1]


def _quoted(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only or bool(_SURROGATE.search(text)))
