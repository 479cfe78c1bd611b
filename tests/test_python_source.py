"""Python files: read, rewritten and put back on disk with every other byte in its place."""

import contextlib
import io
import os
import stat
import sys
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightlint.sources.lexical import logical_lines
from lightlint.sources.load import load, read
from lightlint.sources.python import read_python
from lightlint.sources.source import ForeignError, Source, UnreadableError, UnwritableError
from lightlint.sources.write import write

BOM = b"\xef\xbb\xbf"
no_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")


@given(
    text=st.text(st.characters(max_codepoint=255, exclude_characters="\0")),
    encoding=st.sampled_from(["utf-8", "latin-1", "iso-8859-1"]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_every_encoding_and_line_end_comes_back(text: str, encoding: str, line_end: str) -> None:
    data = f"# coding: {encoding}{line_end}{text}".encode(encoding)
    source = read_python("a.py", data)
    assert source.text.endswith(text)
    assert source.render() == data


@given(st.binary())
def test_any_bytes_come_back_or_are_refused_in_one_line(data: bytes) -> None:
    try:
        rendered = read_python("a.py", data).render()
    except UnreadableError as error:
        rendered = data if "\n" not in str(error) else b""
    assert rendered == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        BOM + b"x = 1\r\n",
        BOM + b"# coding: utf-8\nx = '\xc3\xa9'",
        b"#!/bin/python\n# -*- coding: cp1252 -*-\nx = '\x80'\n",
        b"# vim: set fileencoding=koi8-r :\nx = '\xc1'\n",
        b"x = 1\r\ny = 2\n\x0cz = 3\r",
    ],
)
def test_known_files_come_back(data: bytes) -> None:
    assert read("a.py", data).render() == data


def test_offsets_count_from_behind_the_byte_order_mark() -> None:
    source = read_python("a.py", BOM + b"x = 1\n")
    assert source.text == "x = 1\n"
    assert source.rewritten([source.edit(4, 5, "é")]).render() == BOM + "x = é\n".encode()


def test_a_character_the_encoding_lacks_is_named() -> None:
    source = read_python("a.py", b"# coding: latin-1\nx = 1\n")
    with pytest.raises(UnwritableError, match=r"'\\u20ac' cannot be written in the file's encoding, iso-8859-1"):
        source.rewritten([source.edit(18, 18, "# \u20ac")]).render()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x7fELF\x00", "NUL bytes"),
        ("x = 1".encode("utf-16"), "NUL bytes"),
        (b"x = 1\ny = 2\nz = '\xff'\n", "row 3 is not valid utf-8"),
        (b"x = '\xe9'\n", "row 1 is not valid utf-8"),
        (b"# coding: latin-5000\n", "unknown encoding: latin-5000 in its coding cookie"),
        (b"# coding: latin-5000\nx = '\xff'", "unknown encoding: latin-5000 in its coding cookie"),
        (BOM + b"# coding: latin-1\n", "encoding problem"),
        (b"# coding: rot13\nx\n", "'rot13' is no text encoding"),
        (b"# coding: ascii\n\n\n'\xe9'", "row 4 is not valid ascii"),
        (b"# coding: utf-7\n'+AGEAYg-'", "cannot be written back"),
    ],
)
def test_what_is_no_python_text_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read_python("a.py", data)


@pytest.mark.skipif(sys.platform == "win32", reason="has these encodings")
@pytest.mark.parametrize("name", ["mbcs", "MBCS", "oem"])
def test_an_encoding_of_windows_is_another_machines(name: str) -> None:
    with pytest.raises(ForeignError, match="exists on Windows only"):
        read_python("a.py", f"# -*- coding: {name} -*-\nx = 1\n".encode())


def test_a_path_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be read: No such file"):
        load(tmp_path / "none.py")
    with pytest.raises(UnreadableError, match="cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(UnreadableError, match="cannot be read: embedded null"):
        load("a\0.py")


@given(
    st.lists(
        st.sampled_from(["x = (", ")", "'a'", '"""', "z + \\\n", "# c", "#", "\n", "\r\n", " ", "f'{x}'", "if y:", "z"])
    )
)
def test_logical_lines_are_those_of_the_tokenizer(parts: list[str]) -> None:
    text = "".join(parts) + "\n"
    with contextlib.suppress(SyntaxError, ValueError, tokenize.TokenError):
        compile(text, "a", "exec")
        assert code_rows(text) == token_rows(text)


def test_logical_lines_of_the_standard_library_are_those_of_the_tokenizer() -> None:
    for module in (tokenize, io, contextlib, os, pytest):
        text = Path(str(module.__file__)).read_text("utf-8")
        assert code_rows(text) == token_rows(text)


def code_rows(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """First and last row of each logical line with code, and row and column of each comment."""
    source = read_python("a.py", text.encode())
    lines = list(logical_lines(text))
    places = [source.locate(start) for line in lines for start, _ in line.comments]
    rows = [(source.row_of(line.start), source.row_of(line.end)) for line in lines if line.is_code]
    return rows, [(place.row, place.column) for place in places]


def token_rows(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    silent = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
    rows: list[tuple[int, int]] = []
    comments: list[tuple[int, int]] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        if token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.start[1] + 1))
        elif token.type == tokenize.NEWLINE:
            rows.append((first, token.start[0]))
            first = 0
        elif token.type not in silent:
            first = first or token.start[0]
    return rows, comments


def test_a_write_keeps_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o751)
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "a.py"
    target.write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    with pytest.raises(UnwritableError, match="cannot be written: No such file"):
        write(path, b"new")
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    with pytest.raises(UnwritableError, match="cannot be written"):
        write(loop, b"new")
    assert list(tmp_path.iterdir()) == [loop]


@no_root
def test_read_only_files_and_directories_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(UnwritableError, match="read-only"):
        write(path, b"new")
    path.chmod(0o644)
    tmp_path.chmod(0o555)
    with pytest.raises(UnwritableError, match="cannot be written: Permission denied"):
        write(path, b"new")
    tmp_path.chmod(0o755)
    assert path.read_bytes() == b"old"


@given(st.text(st.sampled_from("ab\r\n")), st.data())
def test_edits_of_a_file_are_all_applied(text: str, data: st.DataObject) -> None:
    source: Source = read_python("a.py", text.encode())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    edits = [source.edit(start, end, "X") for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    expected = text
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.content + expected[edit.end :]
    assert source.rewritten(reversed(edits)).render() == expected.encode()
