"""Notebooks: cells in, cells out, and every byte that no edit asked for as it was."""

import ast
import contextlib
import json
import string
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from lightlint.cli.main import run_command
from lightlint.finding import Edit, Location
from lightlint.sources.load import load
from lightlint.sources.magics import mask, mask_broken
from lightlint.sources.notebook import read_notebook
from lightlint.sources.source import Source, UnreadableError
from lightlint.sources.write import write

often_refused = settings(suppress_health_check=[HealthCheck.filter_too_much])
PYTHON = {"language_info": {"name": "python"}}


def notebook(*sources: str, **style: object) -> bytes:
    """A notebook of code cells whose sources are lists of lines."""
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source.splitlines(keepends=True)}
        for source in sources
    ]
    options = {"indent": 1, "ensure_ascii": False} | style
    document = {"cells": cells, "metadata": PYTHON, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, **options) + "\n").encode()  # type: ignore[arg-type]


def cell_sources(data: bytes) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(data)["cells"] if cell["cell_type"] == "code"]


def replaced(source: Source, old: str, new: str) -> Source:
    start = source.text.index(old)
    return source.rewritten([source.edit(start, start + len(old), new)])


texts = st.text() | st.text(st.sampled_from("\n\n\r\t\\\"'%!?#()[]é\u2028\U0001f525 ax="))
magic_lines = ["%time f(x)", "!pip install torch==2.1", "    !ls \\", "torch.ones?", "x = !ls", "%%time", "%%bash"]
odd_lines = ['"""', "s = '''", "f(", ")", "# é %", "a = b \\", "  % c", "", "d[f'{x=!r}'] = 1", "    y = '!'"]
python_lines = st.sampled_from(["x = 1", "if x:", *magic_lines, *odd_lines])
cell_texts = texts | st.lists(python_lines | texts).map("\n".join)


@st.composite
def notebooks(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """The bytes of some notebook, and the text of its code cells."""
    cells, code = [], []
    for _ in range(draw(st.integers(0, 5))):
        text = draw(cell_texts)
        source = draw(st.sampled_from([text, text.splitlines(keepends=True), [text, ""], list(text)]))
        kind = draw(st.sampled_from(["code", "code", "code", "markdown", "raw"]))
        cells.append({"cell_type": kind, "id": draw(st.text(max_size=3)), "source": source, "metadata": {"source": []}})
        if kind == "code":
            code.append(text)
    style = {
        "indent": draw(st.sampled_from([None, 0, 1, 2, "\t"])),
        "ensure_ascii": draw(st.booleans()),
        "separators": draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    }
    document = {"metadata": PYTHON, "cells": cells, "nbformat": 4}
    raw = json.dumps(document, **style)
    raw = raw.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])).encode() + (
        raw + draw(st.sampled_from(["", "\n", " \n\n"]))
    ).encode(), code


@often_refused
@given(notebooks())
def test_an_unchanged_notebook_is_written_back_byte_for_byte(made: tuple[bytes, list[str]]) -> None:
    data, code = made
    source = read_notebook("a.ipynb", data)
    assert source.render() == data
    assert [cell.end - cell.start for cell in source.cells] == [len(text) for text in code]


@often_refused
@given(notebooks())
@example((notebook("\u2028A=000"), ["\u2028A=000"]))
def test_what_is_not_masked_is_the_cells_text_and_what_remains_parses(made: tuple[bytes, list[str]]) -> None:
    data, code = made
    source = read_notebook("a.ipynb", data)
    for cell, original in zip(source.cells, code, strict=True):
        hidden = {at for start, end in source.masked for at in range(start, end)}
        text = source.text[cell.start : cell.end]
        assert all(
            char == was or (cell.start + at in hidden and was not in "\r\n")
            for at, (char, was) in enumerate(zip(text, original, strict=True))
        )
        compile(text, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@often_refused
@given(made=notebooks(), data=st.data())
def test_edits_change_the_cells_they_are_in_and_nothing_else(
    made: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    before, code = made
    source = read_notebook("a.ipynb", before)
    assume(source.cells)
    changed = dict(enumerate(code))
    edits: list[Edit] = []
    for index, cell in enumerate(source.cells):
        points = sorted(data.draw(st.lists(st.integers(cell.start, cell.end), max_size=4)))
        chosen = [
            source.edit(start, end, data.draw(texts)) for start, end in list(pairwise(points))[::2] if start < end
        ]
        chosen = [edit for edit in chosen if source.editable([edit])]
        for edit in reversed(chosen):
            text = changed[index]
            changed[index] = text[: edit.start - cell.start] + edit.content + text[edit.end - cell.start :]
        edits += chosen
    after = source.rewritten(edits).render()
    assert cell_sources(after.removeprefix(b"\xef\xbb\xbf")) == list(changed.values())
    kept = json.loads(before.decode("utf-8-sig")), json.loads(after.decode("utf-8-sig"))
    for document in kept:
        for cell in document["cells"]:
            if cell["cell_type"] == "code":
                del cell["source"]
    assert kept[0] == kept[1]
    assert before.isascii() <= after.isascii() or not all(edit.content.isascii() for edit in edits)


@often_refused
@given(made=notebooks(), data=st.data())
def test_a_rewritten_source_says_what_the_written_notebook_says(
    made: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    source = read_notebook("a.ipynb", made[0])
    assume(source.cells and not source.broken)
    cell = data.draw(st.sampled_from(source.cells))
    at = data.draw(st.integers(cell.start, cell.end))
    start = source.row_starts[source.row_of(at) - 1]
    edit = source.edit(start, start, "inserted = 1\n")
    assume(source.editable([edit]))
    rewritten = source.rewritten([edit])
    again = read_notebook("a.ipynb", rewritten.render())
    assume(not again.broken)
    assert again.cells == rewritten.cells
    assert len(again.masked) <= len(rewritten.masked)
    if again.masked == rewritten.masked:
        assert again.text == rewritten.text


LINES = [
    ("%x", "_ "),
    ("!", "_"),
    ("?f", "_ "),
    ("f?", "_ "),
    ("if x:\n  torch.nn.Linear??", "if x:\n  _()              "),
    ("%matplotlib inline", "_()               "),
    ("x = !ls 'it", "x = _()    "),
    ("a, b[0] = %sql select '(", "a, b[0] = _()           "),
    ("!pip install a \\\n  'b\nx = 1", "_()             \n    \nx = 1"),
    ("!pip install a \\\r\n  'b\r\nx = 1", "_()             \r\n    \r\nx = 1"),
    ("if x:\n    !ls\nelse:\n    %cd y", "if x:\n    _()\nelse:\n    _()  "),
    ("%%time\nx = 1", "      \nx = 1"),
    ("%%capture out\n%%time\n!ls\nx", "             \n      \n_()\nx"),
    ("# title\n%%bash\nls", "       \n      \n  "),
    ("\n%%writefile a.py\nx = 1", "\n                \n     "),
    ("# a\r\n" * 99 + "x", "# a\r\n" * 99 + "x"),  # two ways to read each line end would be 2**99 ways to read them all
    ("# a\r\n" * 99 + "%%time\r\nx", "# a\r\n" * 99 + "      \r\nx"),
]


@pytest.mark.parametrize(("text", "masked"), LINES)
def test_magics_are_masked_at_equal_length(text: str, masked: str) -> None:
    assert mask(text).text == masked
    ast.parse(masked)


@pytest.mark.parametrize(
    "text",
    [
        's = """\n%matplotlib inline\n!ls\nwhat?\n"""',
        "y = (a\n% b\n)",
        "y = a \\\n% b",
        "x = a != b; y = a %b",
        "f(x, 'why?')  # why?",
        "d[f'{x=!r}'] = 1\nx == y",
        "print(f'{a=!r}?')",
        "x = '\\'\\\n!ls'",
    ],
)
def test_python_is_never_masked(text: str) -> None:
    ast.parse(text)
    assert mask(text).text == text


@often_refused
@given(st.lists(python_lines, max_size=8).map("\n".join))
def test_whatever_parses_stays(text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError:
        assume(False)
    assert mask(text).text == text


def test_this_repositorys_own_code_stays() -> None:
    for path in Path(__file__).parents[1].glob("src/**/*.py"):
        text = path.read_text("utf-8")
        assert mask(text).text == text


def test_install_commands_are_told_with_their_offset() -> None:
    source = read_notebook(
        "a.ipynb",
        notebook(
            "x = 1\n!pip install -q \\\n  torch==2.1  # pinned\n!ls",
            "%pip install 'lightning<2' && echo done\n!{sys.executable} -m pip install a; ls",
            "%%bash\n# pip install no\napt update && sudo pip3 install b",
            "pip install c",
            "!uv pip install d\n%conda install e\n!echo pip install f",
        ),
    )
    commands = ["pip install -q torch==2.1", "pip install 'lightning<2'", "pip install a", "pip3 install b"]
    commands += ["pip install c", "uv pip install d", "conda install e"]
    assert [command for _, command in source.pip_lines] == commands
    assert [source.locate(offset) for offset, _ in source.pip_lines] == [
        *(Location(row, 1) for row in (2, 1, 2, 3, 1, 1, 2))
    ]


BLANKS_TO_FILL: dict[str, list[str]] = {
    "loss = <YOUR CODE>": ["loss"],
    "first, second = <compute both>": ["first", "second"],
    "    scores = <YOUR CODE>  # in a loop": ["scores"],
    "model.head = <YOUR CODE>": [],
    "assert loss == <what?>": [],
    "<YOUR CODE: with a = in it>": [],
    "x =": [],
    "": [],
}


def test_a_broken_cell_is_blanked_but_for_the_names_it_binds_and_told_and_the_others_stay() -> None:
    source = read_notebook("a.ipynb", notebook("x = 1", "y = (\nz == 'é'", "w = 2"))
    assert source.text == "x = 1\ny=_()\n        \nw = 2\n"
    [(offset, message)] = source.broken
    assert (source.cell_at(offset), message) == (source.cells[1], "'(' was never closed")
    assert not source.editable([source.edit(source.cells[1].start, source.cells[1].start, "v = 1\n")])


@pytest.mark.parametrize(
    "text",
    [
        "weights = # your code here",
        "def weigh(x):\n    # YOUR CODE HERE\nprint(weigh(1))",
        "for x in data:\n    #\n    # your code here\n    #\n\n    loss = f(out)",
        "def weigh(x):\n    # fill in the weights\n    return weights",
        "loss = <YOUR CODE: of all scores>",
        "key = # your key here",
        "plt.plot(<R singular values>, 'ro')",
        "<A WHOLE LOT OF YOUR CODE>\nprint(1)",
        "self.<NAME> = nn.Parameter(<VALUES>)",
        "model = Model(\n    ???\n)",
        "# your code here for a network\nnet = \nnet.eval()",
        "scores = ....",
    ],
)
def test_a_cell_with_a_blank_to_fill_is_blanked_without_report(text: str) -> None:
    source = read_notebook("a.ipynb", notebook(text))
    assert (source.broken, source.masked) == ((), ((0, len(text)),))


@pytest.mark.parametrize(
    "text",
    [
        "# YOUR CODE HERE\nweights = f(1)",
        "### START CODE HERE ###\nweights = f(1)\n### END CODE HERE ###",
        "weights = f(1)  # your code here",
        "weights = f(1)  # put the code on the GPU",
    ],
)
def test_a_blank_that_is_filled_is_read(text: str) -> None:
    assert read_notebook("a.ipynb", notebook(text)).masked == ()


@given(st.lists(st.sampled_from(sorted(BLANKS_TO_FILL)), max_size=6).map("\n".join))
def test_a_broken_cell_parses_at_its_length_and_binds_what_it_bound(text: str) -> None:
    masked = mask_broken(text).text
    assert [len(row) for row in masked.split("\n")] == [len(row) for row in text.split("\n")]
    bound = {node.id for node in ast.walk(ast.parse(masked)) if isinstance(node, ast.Name) and node.id != "_"}
    assert bound == {name for row, names in BLANKS_TO_FILL.items() if row in text.split("\n") for name in names}


@pytest.mark.parametrize(
    "text", ["def scale(x):\n    twice = <YOUR CODE>\n    return x\n", "class scale:\n    def f(self):"]
)
def test_a_broken_cell_binds_what_it_defines(text: str) -> None:
    masked = ast.parse(mask_broken(text).text)
    assert [node.id for node in ast.walk(masked) if isinstance(node, ast.Name) and node.id != "_"] == ["scale"]


@pytest.mark.parametrize("text", ["  x = 1\n  y = 2", ">>> x = 1", "%sql\nselect * from t", "cd ..", "conda install x"])
def test_a_cell_that_ipython_runs_but_python_does_not_is_masked_without_report(text: str) -> None:
    source = read_notebook("a.ipynb", notebook(text))
    assert (source.broken, source.masked) == ((), ((0, len(text)),))


def test_cells_are_numbered_over_all_cells_and_rows_start_anew() -> None:
    document = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# a"]},
            {"cell_type": "code", "metadata": {}, "source": "x = 1\ny = 2"},
            {"cell_type": "code", "metadata": {"vscode": {"languageId": "r"}}, "source": "x <- 1"},
            {"cell_type": "code", "metadata": {}, "source": ["z = 3"]},
        ],
        "metadata": {},
    }
    source = read_notebook("a.ipynb", json.dumps(document).encode())
    assert [cell.number for cell in source.cells] == [2, 3, 4]
    assert source.text == "x = 1\ny = 2\n      \nz = 3\n"
    assert source.locate(source.text.index("y")) == Location(2, 1)
    assert source.locate(source.text.index("z")) == Location(1, 1)


def test_a_change_touches_only_the_lines_it_changes() -> None:
    data = notebook("a = 'é'\n%magic é\nb = 1\n", "c = 1", "d = 1", indent=2)
    data = data.replace(b'"c = 1"', b'"\\u0063 = 1"').replace("'é'".encode(), b"'\\u00e9'")
    source = read_notebook("a.ipynb", data)
    after = replaced(replaced(source, "b = 1", "b = 'ü'"), "d = 1", "d = 1\ne = 2").render()
    expected = data.replace(b"b = 1", "b = 'ü'".encode())
    assert after == expected.replace(b'"d = 1"', b'"d = 1\\n",\n        "e = 2"')


def test_escapes_stay_escapes_and_strings_stay_strings() -> None:
    data = notebook("a = 'é'", ensure_ascii=True, indent=None)
    assert replaced(read_notebook("a.ipynb", data), "é", "ü").render() == data.replace(b"\\u00e9", b"\\u00fc")
    data = b'{"cells": [{"cell_type": "code", "source" :"a\\nb"}, {"source": [], "cell_type":"code"}]}'
    source = read_notebook("a.ipynb", data)
    assert replaced(source, "b", "c").render() == data.replace(b"a\\nb", b"a\\nc")
    filled = source.rewritten([source.edit(source.cells[1].start, source.cells[1].start, "x\ny")])
    assert filled.render() == data.replace(b"[],", b'["x\\n", "y"],')


def test_dropping_the_last_row_of_a_cell_leaves_no_blank_row() -> None:
    source = replaced(read_notebook("a.ipynb", notebook("x\ny", "z")), "y\n", "")
    assert (source.text, cell_sources(source.render())) == ("x\nz\n", ["x", "z"])


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("x\n", "", True),  # a row above a magic
        ("y\n", "", True),
        ("\ny", "", True),  # a row below one
        ("y\nz", "w", False),  # two cells
        ("%magic", "w", False),
        ("mag", "w", False),
        ("\ny", "y", False),  # would join the magic
        ("x\n", "x; ", False),
        ("%%time", "", False),
    ],
)
def test_edits_keep_off_magics_and_inside_their_cell(old: str, new: str, allowed: bool) -> None:
    source = read_notebook("a.ipynb", notebook("x\n%magic\ny", "z", "%%time\nw"))
    start = "x\n%magic\ny\nz\n%%time\nw\n".index(old)
    edit = source.edit(start, start + len(old), new)
    assert source.editable([edit]) is allowed
    if not allowed:
        with pytest.raises(ValueError, match="edit"):
            source.rewritten([edit])


def test_nothing_is_put_before_a_cell_magic_or_behind_a_magic_on_its_row() -> None:
    source = read_notebook("a.ipynb", notebook("%%time\nx\n!ls"))
    assert not source.editable([source.edit(0, 0, "import a\n")])
    end = source.cells[0].end
    assert not source.editable([source.edit(end, end, "# noqa")])
    assert source.editable([source.edit(end, end, "\ny")])
    assert replaced(source, "x", "longer").render() == notebook("%%time\nlonger\n!ls")


@pytest.mark.parametrize("text", ["\n%%time\nx", "# why\n%%time\nx", "%%capture\n\n%%time\nx"])
def test_no_code_is_put_above_a_cell_magic_behind_blank_lines_and_comments(text: str) -> None:
    source = read_notebook("a.ipynb", notebook(text))
    for start in source.row_starts[:-2]:
        assert not source.editable([source.edit(start, start, "import a\n")])
    assert source.editable([source.edit(source.text.index("x"), source.cells[0].end, "y")])
    if text.startswith("#"):
        assert source.editable([source.edit(0, 6, "")])


def test_overlapping_edits_are_refused() -> None:
    source = read_notebook("a.ipynb", notebook("abcd"))
    with pytest.raises(ValueError, match="overlap"):
        source.rewritten([source.edit(0, 3, ""), source.edit(2, 4, "")])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b'{"cells": [', "not JSON: expecting value, in row 1"),
        (b'{"cells": [] "a": 1}', "not JSON"),
        (b'{"cells": []} x', "not JSON: extra data"),
        (b'{"cells": [{"source": "a}]}', "not JSON: unterminated string"),
        (b"{cells: 1}", "not JSON"),
        (b'{"cells" 1}', "not JSON"),
        (b'{"a": ' + b"[" * 100_000, "nests too deep"),
        (b"[1]", "is no object"),
        (b"not", "not JSON"),
        (b'{"cells": {}}', "no list of cells"),
        (b'{"worksheets": [], "nbformat": 3}', "format 3"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "neither a string nor"),
        (b'{"cells": [], "metadata": {"language_info": {"name": "R"}}}', r"another language \(R\)"),
        (b'{"cells": [], "metadata": {"kernelspec": {"language": "julia"}}}', r"another language \(julia\)"),
        (b'{"cells": ["\xff"]}', "byte 12 is not valid UTF-8"),
    ],
)
def test_what_is_no_python_notebook_is_refused_in_one_line(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason) as caught:
        read_notebook("a.ipynb", data)
    assert "\n" not in str(caught.value)


@often_refused
@given(st.binary(max_size=60) | st.text(string.printable).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(UnreadableError):
        assert read_notebook("a.ipynb", data).render() == data


def test_a_notebook_goes_to_disk_and_back(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook("x = 1", "!ls"))
    write(path, replaced(load(path), "1", "2").render())
    assert path.read_bytes() == notebook("x = 2", "!ls")


def test_a_diff_shows_the_text_rows_and_number_of_each_cell_that_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.ipynb"
    magic = "%%time\nimport torch\n!ls data\n"
    path.write_bytes(notebook("# nothing", magic + "for p in model.parameters():\n    p.require_grad = False", "x = 1"))
    assert run_command(["--isolated", "--no-cache", "--unsafe-fixes", "--diff", "--select=LL207", str(path)]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        f"--- {path}:cell 2",
        f"+++ {path}:cell 2",
        "@@ -2,4 +2,4 @@",
        " import torch",
        " !ls data",
        " for p in model.parameters():",
        "-    p.require_grad = False",
        "+    p.requires_grad = False",
    ]


def test_an_indent_behind_which_a_line_goes_on_is_none_that_a_newer_python_knows() -> None:
    data = json.dumps(
        {"cells": [{"cell_type": "code", "metadata": {}, "source": "\t\\\n0"}], "metadata": {}, "nbformat": 4}
    ).encode()
    source = read_notebook("a.ipynb", data)
    assert not source.text.strip()
    assert not source.broken


def test_a_notebook_of_python_2_has_no_broken_cells() -> None:
    cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": "print 'loss', 1\n"}
    info = {"name": "python", "codemirror_mode": {"name": "ipython", "version": 2}, "version": "2.7.15"}
    for version, broken in (("2.7.15", 0), ("3.7.3", 1)):
        metadata = {"language_info": info | {"version": version}}
        data = json.dumps({"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 2}).encode()
        assert len(read_notebook("old.ipynb", data).broken) == broken
