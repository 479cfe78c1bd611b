"""The edit helpers: each changes what it says, byte for byte, and nothing else."""

from __future__ import annotations

import ast
from itertools import pairwise

import libcst as cst
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from program import Program

from lightlint.finding import Applicability
from lightlint.fixes.drafts.imports import drop_import
from lightlint.fixes.drafts.moves import move_after, move_before
from lightlint.fixes.edits import (
    Draft,
    RawEdit,
    add_import,
    as_fix,
    decorate,
    drop_statement,
    insert_after,
    insert_argument,
    insert_before,
    join,
    remove_argument,
    rename,
    replace,
    replace_argument,
    replace_argument_name,
    wrap,
    wrap_statements,
)
from lightlint.sources.source import Cell, Source

SMALL = cst.BaseSmallStatement


def applied(program: Program, draft: Draft | None) -> str | None:
    return None if draft is None else program.apply(draft)


def dropped(text: str, snippet: str) -> tuple[str, bool] | None:
    program = Program(text)
    draft = drop_statement(program.code, program.node(snippet, SMALL))
    return None if draft is None else (program.apply(draft), draft.drops_comment)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nf()\nb()\n", "a()\nb()\n"),
        ("a()\r\nf()\r\n", "a()\r\n"),
        ("if x:\r\n\ta()\r\n\tf()\r\n\tb()\r\n", "if x:\r\n\ta()\r\n\tb()\r\n"),
        ("if x:\n    # why\n    f()\n    b()\n", "if x:\n    # why\n    b()\n"),
        ("if x:\n    f()\n", "if x:\n    pass\n"),
        ("if x:\n    f()  # note\n", "if x:\n    pass  # note\n"),
        ("if x: f()\n", "if x: pass\n"),
        ("if x: f(); b()\n", "if x: b()\n"),
        ("if x:\n    f()\nelse:\n    f()\n", "if x:\n    pass\nelse:\n    f()\n"),
        ("with x:\n    f();\n", "with x:\n    pass;\n"),
        ("a(); f(); b()\n", "a(); b()\n"),
        ("f(); b()  # note\n", "b()  # note\n"),
        ("a(); f()  # note\n", "a()  # note\n"),
        ("a() ;f() ;\n", "a() ;\n"),
        ("a(); \\\n  f()\n", "a()\n"),
        ("a()\nf()", "a()"),
        ("a()\r\nf()", "a()"),
        ("f()", ""),
        ("f()\n", ""),
        ("a()\nf();\nb()\n", "a()\nb()\n"),
        ("a()\nf() \\\n\nb()\n", "a()\nb()\n"),
        ("a()\n\f\nf()\nb()\n", "a()\n\f\nb()\n"),
        ("if x:\n\f    a()\n\f    f()\n", "if x:\n\f    a()\n"),
        ('def g():\n    """doc"""\n    f()\n', 'def g():\n    """doc"""\n'),
        ("class A:\n    @d\n    def g(self): f()\n", "class A:\n    @d\n    def g(self): pass\n"),
        ("a()\n\n\nf()\n\n\nb()\n", "a()\n\n\n\n\nb()\n"),
    ],
)
def test_drop_statement(before: str, after: str) -> None:
    assert dropped(before, "f()") == (after, False)


def test_drop_statement_of_many_lines() -> None:
    statement = 'x = g("""a\n  b\n""", [\n  1,\n])'
    assert dropped(f"a()\n{statement}\nb()\n", statement) == ("a()\nb()\n", False)


@pytest.mark.parametrize(
    ("before", "snippet", "after"),
    [
        ("a()\nf()  # note\nb()\n", "f()", "a()\nb()\n"),
        ("a()\nf(  # note\n)\nb()\n", "f(  # note\n)", "a()\nb()\n"),
        ("if x:\n  f(  # note\n  )\n", "f(  # note\n  )", "if x:\n  pass\n"),
    ],
)
def test_drop_statement_tells_of_a_lost_comment(before: str, snippet: str, after: str) -> None:
    assert dropped(before, snippet) == (after, True)


def test_a_hash_in_a_string_is_no_comment() -> None:
    assert dropped('f("# no")\nb()\n', 'f("# no")') == ("b()\n", False)


@pytest.mark.parametrize(
    "text", ['"doc"\n', 'def g():\n    "doc"\n', 'class A: "doc"\n', 'def g():\n    "doc"\n    return 1\n']
)
def test_docstrings_are_not_dropped(text: str) -> None:
    assert dropped(text, '"doc"') is None


def test_drop_a_whole_line_of_statements() -> None:
    program = Program("if x:\n    a(); b()\n    c()\n")
    assert (
        applied(program, drop_statement(program.code, program.node("a(); b()", cst.SimpleStatementLine)))
        == "if x:\n    c()\n"
    )
    program = Program("if x:\n    a(); b()\n")
    assert (
        applied(program, drop_statement(program.code, program.node("a(); b()", cst.SimpleStatementLine)))
        == "if x:\n    pass\n"
    )


def test_dropping_the_last_line_of_a_cell_keeps_the_cells_apart() -> None:
    source = Source("n.ipynb", "a()\nf()\nb()\n", Program("").source.origin, cells=(Cell(1, 0, 7), Cell(2, 8, 11)))
    program = Program(source)
    fix = as_fix(source, "drop", drop_statement(program.code, program.node("f()", SMALL)), Applicability.SAFE)
    assert fix is not None
    rewritten = source.rewritten(fix.edits)
    assert [rewritten.text[cell.start : cell.end] for cell in rewritten.cells] == ["a()", "b()"]


@pytest.mark.parametrize(
    ("before", "argument", "after"),
    [
        ("f()\n", "k=1", "f(k=1)\n"),
        ("f( )\n", "k=1", "f(k=1)\n"),
        ("f(\n)\n", "k=1", "f(k=1)\n"),
        ("f(  # why\n)\n", "k=1", "f(  # why\n    k=1,\n)\n"),
        ("f(a)\n", "k=1", "f(a, k=1)\n"),
        ("f(a,)\n", "k=1", "f(a, k=1,)\n"),
        ("f( a )\n", "k=1", "f( a, k=1 )\n"),
        ("f(a, **w)\n", "k=1", "f(a, k=1, **w)\n"),
        ("f(**w)\n", "k=1", "f(k=1, **w)\n"),
        ("f(\n    **w\n)\n", "k=1", "f(\n    k=1,\n    **w\n)\n"),
        ("f(*a)\n", "k=1", "f(*a, k=1)\n"),
        ("f(a, j=2)\n", "b", "f(a, b, j=2)\n"),
        ("f(j=2)\n", "b == c", "f(b == c, j=2)\n"),
        ("f(x for x in y)\n", "k=1", "f((x for x in y), k=1)\n"),
        ("f((x for x in y))\n", "k=1", "f((x for x in y), k=1)\n"),
        ("f(\n    x for x in y\n)\n", "k=1", "f(\n    (x for x in y),\n    k=1\n)\n"),
        ('f(\n    "x",  # keep\n)\n', "k=1", 'f(\n    "x",  # keep\n    k=1,\n)\n'),
        ('f(\n    "x"  # keep\n)\n', "k=1", 'f(\n    "x",  # keep\n    k=1\n)\n'),
        ("f(\n    a  # keep\n    ,\n)\n", "k=1", "f(\n    a,  # keep\n    k=1\n    ,\n)\n"),
        ("f(\r\n\ta,\r\n\tb,\r\n)\r\n", "k=1", "f(\r\n\ta,\r\n\tb,\r\n\tk=1,\r\n)\r\n"),
        ("f(\n    a,\n    b\n)\n", "k=1", "f(\n    a,\n    b,\n    k=1\n)\n"),
        ("f(\n    a, b\n)\n", "k=1", "f(\n    a, b, k=1\n)\n"),
        ("f(\n    a,\n    b)\n", "k=1", "f(\n    a,\n    b,\n    k=1)\n"),
        ("f(a,\n  b)\n", "k=1", "f(a,\n  b,\n  k=1)\n"),
        ("f(a,\n  b,)\n", "k=1", "f(a,\n  b,\n  k=1,)\n"),
        ("f(a, b,\n  c)\n", "k=1", "f(a, b,\n  c, k=1)\n"),
        ("f(a\n  , b\n  )\n", "k=1", "f(a\n  , b, k=1\n  )\n"),
        (
            "f(\n    a,  # one\n    # the rest\n    **w,\n)\n",
            "k=1",
            "f(\n    a,  # one\n    k=1,\n    # the rest\n    **w,\n)\n",
        ),
        ("f([\n    a,\n])\n", "k=1", "f([\n    a,\n], k=1)\n"),
        ("f(a, \\\n  b)\n", "k=1", "f(a, \\\n  b,\n  k=1)\n"),
        ("(f)(a)\n", "k=1", "(f)(a, k=1)\n"),
        ("(f(a))\n", "k=1", "(f(a, k=1))\n"),
        ("f  (a)\n", "k=1", "f  (a, k=1)\n"),
        ("f((a))\n", "k=1", "f((a), k=1)\n"),
    ],
)
def test_insert_argument(before: str, argument: str, after: str) -> None:
    program = Program(before)
    draft = insert_argument(program.code, next(program.nodes(cst.Call)), argument)
    assert draft is not None
    assert not draft.drops_comment
    assert program.apply(draft) == after
    ast.parse(after)


@pytest.mark.parametrize(("text", "argument"), [("f(k=2)\n", "k=1"), ('f"{f(a)}"\n', "k=1")])
def test_insert_argument_refuses(text: str, argument: str) -> None:
    program = Program(text)
    assert insert_argument(program.code, next(program.nodes(cst.Call)), argument) is None


@pytest.mark.parametrize(
    ("before", "argument", "after", "drops_comment"),
    [
        ("f(x)\n", "x", "f()\n", False),
        ("f( x, )\n", "x", "f()\n", False),
        ("f(\n    x,\n)\n", "x", "f()\n", False),
        ("f(\n    x,  # note\n)\n", "x", "f()\n", True),
        ("f(x, b)\n", "x", "f(b)\n", False),
        ("f(a, x)\n", "x", "f(a)\n", False),
        ("f(a, x,)\n", "x", "f(a,)\n", False),
        ("f(a, x, b)\n", "x", "f(a, b)\n", False),
        ("f(a, x,\n  b)\n", "x", "f(a,\n  b)\n", False),
        ("f(a,\n  x)\n", "x", "f(a)\n", False),
        ("f(\n    a,  # one\n    x,\n    b,\n)\n", "x", "f(\n    a,  # one\n    b,\n)\n", False),
        ("f(\n    a,\n    x,  # two\n    b,\n)\n", "x", "f(\n    a,\n    b,\n)\n", True),
        ("f(\n    a,\n    # about x\n    x,\n    b,\n)\n", "x", "f(\n    a,\n    # about x\n    b,\n)\n", False),
        ("f(\n    x,\n    # about b\n    b,\n)\n", "x", "f(\n    # about b\n    b,\n)\n", False),
        ("f(\n    a,\n    x\n)\n", "x", "f(\n    a\n)\n", False),
        ("f(\n    a,  # one\n    x\n)\n", "x", "f(\n    a  # one\n)\n", False),
        ("f(\r\n\ta,\r\n\tx,\r\n)\r\n", "x", "f(\r\n\ta,\r\n)\r\n", False),
        ("f(a,  # one\n  x)\n", "x", "f(a)\n", True),
        ("f(x,  # one\n  b)\n", "x", "f(b)\n", True),
        ("f(a, k=(1,  # one\n  2), b=3)\n", "k=(1,  # one\n  2)", "f(a, b=3)\n", True),
        ("f(a, *x, **w)\n", "*x", "f(a, **w)\n", False),
        ("f(x for x in y)\n", "x for x in y", "f()\n", False),
    ],
)
def test_remove_argument(before: str, argument: str, after: str, drops_comment: bool) -> None:
    program = Program(before)
    node = cst.ensure_type(program.node(argument, cst.Arg), cst.Arg)
    draft = remove_argument(program.code, next(program.nodes(cst.Call)), node)
    assert draft is not None
    assert (program.apply(draft), draft.drops_comment) == (after, drops_comment)
    ast.parse(after)


def test_replace_argument_name() -> None:
    program = Program("f(old = 1, b=2)\n")
    first = next(program.nodes(cst.Arg))
    assert applied(program, replace_argument_name(program.code, first, "new")) == "f(new = 1, b=2)\n"
    assert replace_argument_name(program.code, first, "b") is None
    program = Program("f(1)\n")
    assert replace_argument_name(program.code, next(program.nodes(cst.Arg)), "new") is None


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("y = N\n", "a + b", "y = a + b\n"),
        ("y = N * 2\n", "a + b", "y = (a + b) * 2\n"),
        ("y = N + 2\n", "a * b", "y = a * b + 2\n"),
        ("y = N.real\n", "a * b", "y = (a * b).real\n"),
        ("y = N.real\n", "1", "y = (1).real\n"),
        ("y = f(N)\n", "a if b else c", "y = f(a if b else c)\n"),
        ("y = f(N)\n", "a, b", "y = f((a, b))\n"),
        ("y = f(N)\n", "a for a in b", "y = f((a for a in b))\n"),
        ("y = f(k=N)\n", "(z := 1)", "y = f(k=(z := 1))\n"),
        ("y = N\n", "z := 1", "y = (z := 1)\n"),
        ("y = N\n", "a +\n  b", "y = (a +\n  b)\n"),
        ("y = not N\n", "a or b", "y = not (a or b)\n"),
        ("assert N\n", "a, b", "assert (a, b)\n"),
        ("def f(): return(N)\n", "a", "def f(): return a\n"),
        ("y = [N\n     for a in b]\n", "a or c", "y = [a or c\n     for a in b]\n"),
        ("@N\ndef f(): ...\n", "g(1)", "@g(1)\ndef f(): ...\n"),
        ("y = a**N\n", "-b", "y = a**-b\n"),
        ("y = N**a\n", "-b", "y = (-b)**a\n"),
        ("y = lambda: N\n", "a if b else c", "y = lambda: a if b else c\n"),
        ("y = {**N}\n", "a or b", "y = {**(a or b)}\n"),
    ],
)
def test_replace(before: str, text: str, after: str) -> None:
    program = Program(before)
    node = next(node for node in program.nodes(cst.Name) if program.code.text_of(node).strip("()") == "N")
    draft = replace(program.code, node, text)
    assert applied(program, draft) == after
    ast.parse(after)


def test_replace_tells_of_a_lost_comment() -> None:
    program = Program("y = f(  # note\n)\n")
    draft = replace(program.code, next(program.nodes(cst.Call)), "g()")
    assert draft is not None
    assert draft.drops_comment


@pytest.mark.parametrize(
    ("before", "node", "around", "after"),
    [
        ("y = loss\n", "loss", ("", ".detach()"), "y = loss.detach()\n"),
        ("y += a + b\n", "a + b", ("", ".detach()"), "y += (a + b).detach()\n"),
        ("y += (a + b)\n", "(a + b)", ("", ".detach()"), "y += (a + b).detach()\n"),
        ("y = a, b\n", "a, b", ("list(", ")"), "y = list((a, b))\n"),
        ("y = f(x for x in y)\n", "x for x in y", ("list(", ")"), "y = f(list(x for x in y))\n"),
        ("y = f(a)[0]\n", "f(a)", ("not ", ""), "y = (not f(a))[0]\n"),
        ("y = b and f(a)\n", "f(a)", ("not ", ""), "y = b and not f(a)\n"),
        (
            "y = f(\n    a  # one\n    + b,\n)\n",
            "a  # one\n    + b",
            ("", ".x"),
            "y = f(\n    (a  # one\n    + b).x,\n)\n",
        ),
        ("y = [z]if(a)else b\n", "(a)", ("bool(", ")"), "y = [z]if bool((a))else b\n"),
        ("y = await_(1)\n", "1", ("", ".real"), "y = await_((1).real)\n"),
        ("y = -a\n", "-a", ("", ".x"), "y = (-a).x\n"),
        ("y = -a\n", "a", ("", ".x"), "y = -a.x\n"),
    ],
)
def test_wrap(before: str, node: str, around: tuple[str, str], after: str) -> None:
    program = Program(before)
    draft = wrap(program.code, program.node(node, cst.BaseExpression), *around)
    assert applied(program, draft) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("f(1)\n", "k=2 if a else b", "f(k=2 if a else b)\n"),
        ("f(\n    old = 1,  # why\n)\n", "k=2", "f(\n    k=2,  # why\n)\n"),
        ("f(old=1, k=3)\n", "k=2", None),
        ("f'{f(1)}'\n", "k=2", None),
    ],
)
def test_replace_argument(before: str, text: str, after: str | None) -> None:
    program = Program(before)
    call = next(program.nodes(cst.Call))
    assert isinstance(call, cst.Call)
    assert applied(program, replace_argument(program.code, call.args[0], text)) == after


def test_rename() -> None:
    program = Program("y = a . old(1)\n")
    assert applied(program, rename(program.code, program.node("a . old"), "new")) == "y = a . new(1)\n"
    program = Program("y = old(1)\n")
    assert applied(program, rename(program.code, program.node("old", cst.Name), "x.new")) == "y = x.new(1)\n"
    program = Program('f"{old=}"\n')
    assert rename(program.code, program.node("old", cst.Name), "new") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nf()\n", "a()\nn()\nf()\n"),
        ("if x:\r\n\tf()\r\n", "if x:\r\n\tn()\r\n\tf()\r\n"),
        ("if x: f()\n", "if x: n(); f()\n"),
        ("a(); f()\n", "a(); n(); f()\n"),
        ("f(); a()\n", "n()\nf(); a()\n"),
        ("if x:\n    # why\n    f()\n", "if x:\n    n()\n    # why\n    f()\n"),
        ("a()\n# one\n# two\nf()\n", "a()\nn()\n# one\n# two\nf()\n"),
        ("a()\n# a's\n\n# f's\nf()\n", "a()\n# a's\n\nn()\n# f's\nf()\n"),
        ("if x:\n    a()\n  # deep\n    # f's\n    f()\n", "if x:\n    a()\n  # deep\n    n()\n    # f's\n    f()\n"),
        ("a()\n# %%\nf()\n", "a()\n# %%\nn()\nf()\n"),
        ("# licence\nf()\n", "# licence\nn()\nf()\n"),
        ("# licence\n\n# f's\nf()\n", "# licence\n\nn()\n# f's\nf()\n"),
        ('a("""\n# no comment """)\nf()\n', 'a("""\n# no comment """)\nn()\nf()\n'),
        ("f()", "n()\nf()"),
        ("if x:\n\f    f()\n", "if x:\n    n()\n\f    f()\n"),
    ],
)
def test_insert_before(before: str, after: str) -> None:
    program = Program(before)
    assert applied(program, insert_before(program.code, program.node("f()", SMALL), "n()")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\nb()\n", "f()\nn()\nb()\n"),
        ("if x:\r\n\tf()  # note\r\n", "if x:\r\n\tf()  # note\r\n\tn()\r\n"),
        ("if x: f()\n", "if x: f(); n()\n"),
        ("f(); b()\n", "f(); n(); b()\n"),
        ("a(); f()\n", "a(); f()\nn()\n"),
        ("f();\n", "f();\nn()\n"),
        ("a()\nf()", "a()\nf()\nn()"),
        ("f() \\\n\nb()\n", "f() \\\n\nn()\nb()\n"),
    ],
)
def test_insert_after(before: str, after: str) -> None:
    program = Program(before)
    assert applied(program, insert_after(program.code, program.node("f()", SMALL), "n()")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nb()\nf()  # note\nc()\n", "a()\nf()  # note\nb()\nc()\n"),
        (
            "if x:\n\tb()\n\t# one\n\t# two\n\tf()  # note\n\tc()\n",
            "if x:\n\t# one\n\t# two\n\tf()  # note\n\tb()\n\tc()\n",
        ),
        ("a()\n# b's\nb()\n\n# f's\nf()", "a()\n# f's\nf()\n# b's\nb()\n"),
        ("if x:\r\n  b()  # b\r\n  f()  # f\r\n", "if x:\r\n  f()  # f\r\n  b()  # b\r\n"),
        ("if x:\n    b()\n    f();  # f\n", "if x:\n    f();  # f\n    b()\n"),
        ("b(); a()\nf()  # f\n", "f()  # f\nb(); a()\n"),
        ("b()\na(); f()  # both\n", "f()\nb()\na()  # both\n"),
        ("b(); f()\n", "f()\nb()\n"),
        ("b()\nf() \\\n\nc()\n", "f() \\\n\nb()\nc()\n"),
    ],
)
def test_move_before(before: str, after: str) -> None:
    program = Program(before)
    statement, target = program.node("f()", SMALL), program.node("b()", SMALL)
    assert isinstance(statement, SMALL)
    draft = move_before(program.code, statement, target)
    assert draft is not None
    assert not draft.drops_comment
    assert program.apply(draft) == after


@pytest.mark.parametrize(
    "text",
    [
        "b()\nx = 1\na(x)\n",
        "b()\nfor x, y in z:\n    pass\na(x)\n",
        "b()\nx += 1\na(x.y)\n",
        "b()\ndef x(): ...\na(x)\n",
        "b()\nc(x := 2)\na(x)\n",
    ],
)
def test_no_statement_moves_above_what_binds_its_names(text: str) -> None:
    program = Program(text)
    statement = next(each for each in program.nodes(SMALL) if program.code.text_of(each).startswith("a("))
    assert move_before(program.code, statement, program.node("b()", SMALL)) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()  # note\nb()\nc()\n", "b()\nf()  # note\nc()\n"),
        (
            "if x:\n    # f's\n    f()\n    # b's\n    b()  # b\n",
            "if x:\n    # b's\n    b()  # b\n    # f's\n    f()\n",
        ),
        ("x = 1\nf(\n  1,  # one\n)  # f\nb()", "x = 1\nb()\nf(\n  1,  # one\n)  # f\n"),
        ("f()  # f\nb(); a()\n", "b(); f(); a()\n"),
        ("# head\nf()  # f\nb()\n", "# head\nb()\nf()  # f\n"),
    ],
)
def test_move_after(before: str, after: str) -> None:
    program = Program(before)
    statement = next(program.nodes(cst.Expr))
    assert isinstance(statement, SMALL)
    draft = move_after(program.code, statement, program.node("b()", SMALL))
    assert draft is not None
    assert draft.drops_comment == (after.count("#") < before.count("#"))
    assert program.apply(draft).rstrip() == after.rstrip()


def test_statements_move_within_their_block_only() -> None:
    program = Program("b()\nif x:\n    f()\n")
    statement, target = program.node("f()", SMALL), program.node("b()", SMALL)
    assert isinstance(statement, SMALL)
    assert move_before(program.code, statement, target) is None
    assert move_after(program.code, statement, target) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# why\ndef g():\n    a()\n", "# why\n@n\ndef g():\n    a()\n"),
        (
            "class A:\n\t# why\n\t@d\n\tdef g(self):\n\t\ta()\n",
            "class A:\n\t# why\n\t@n\n\t@d\n\tdef g(self):\n\t\ta()\n",
        ),
    ],
)
def test_decorate(before: str, after: str) -> None:
    program = Program(before)
    function = next(program.nodes(cst.FunctionDef))
    assert isinstance(function, cst.FunctionDef)
    assert applied(program, decorate(program.code, function, "@n")) == after


def test_insert_around_compound_statements() -> None:
    text = "@d\nclass A:\n    def g(self):\n        a()\n\n        # the end of g\n\n# about b\nb()\n"
    program = Program(text)
    (cls,) = program.nodes(cst.ClassDef)
    (function,) = program.nodes(cst.FunctionDef)
    assert applied(program, insert_before(program.code, cls, "n()")) == "n()\n" + text
    assert applied(program, insert_after(program.code, cls, "n()")) == text.replace("end of g\n", "end of g\nn()\n")
    lines = insert_after(program.code, function, "if n:\n    n()")
    assert applied(program, lines) == text.replace("end of g\n", "end of g\n    if n:\n        n()\n")


@pytest.mark.parametrize(
    ("text", "snippet"),
    [('"doc"\n', '"doc"'), ("from __future__ import annotations\n", "from __future__ import annotations")],
)
def test_nothing_goes_before_docstrings_and_future_imports(text: str, snippet: str) -> None:
    program = Program(text)
    assert insert_before(program.code, program.node(snippet, SMALL), "n()") is None


def test_no_statement_goes_before_an_elif_and_no_block_into_a_line() -> None:
    program = Program("if x:\n    a()\nelif y:\n    b()\n")
    inner = list(program.nodes(cst.If))[1]
    assert insert_before(program.code, inner, "n()") is None
    assert insert_after(program.code, inner, "n()") is None
    program = Program("if x: f()\n")
    assert insert_before(program.code, program.node("f()", SMALL), "if n: n()") is None
    assert insert_after(program.code, program.node("f()", SMALL), "a()\nb()") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nb()\nc()\n", "a()\nif x:\n    b()\n    c()\n"),
        (
            "def g():\n  a()\n\n  # why\n  b()  # note\n\n  c(\n1,\n  )",
            "def g():\n  a()\n\n  # why\n  if x:\n    b()  # note\n\n    c(\n  1,\n    )",
        ),
        (
            "if y:\r\n\ta()\r\n\tb()\r\n\r\n\tc()\r\n\td()\r\n",
            "if y:\r\n\ta()\r\n\tif x:\r\n\t\tb()\r\n\r\n\t\tc()\r\n\td()\r\n",
        ),
        (
            "a()\nb()\nfor i in c:\n  d()\n  # last\n\n# e\ne()\n",
            "a()\nif x:\n  b()\n  for i in c:\n    d()\n    # last\n\n# e\ne()\n",
        ),
        ("a()\nb()\nc()", "a()\nif x:\n    b()\n    c()"),
    ],
)
def test_wrap_statements(before: str, after: str) -> None:
    program = Program(before)
    (line, *_) = [node for node in program.nodes(cst.SimpleStatementLine) if program.code.text_of(node) == "b()"]
    block = program.parent(line)
    assert isinstance(block, cst.Module | cst.IndentedBlock)
    draft = wrap_statements(program.code, block.body[1:3], "if x:")
    assert applied(program, draft) == after
    ast.parse(after)


def test_wrap_statements_leaves_long_strings_and_strangers_alone() -> None:
    program = Program('a()\nb("""\n""")\nc()\n')
    first, second, third = program.module.body
    assert wrap_statements(program.code, [first, second], "if x:") is None
    assert wrap_statements(program.code, [first, third], "if x:") is None
    decorated = Program("@d\ndef g():\n    a()\n")
    draft = wrap_statements(decorated.code, decorated.module.body, "if x:")
    assert applied(decorated, draft) == "if x:\n    @d\n    def g():\n        a()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\n\nx = 1\n", "import os\nimport copy\n\nx = 1\n"),
        ('"""doc"""\nx = 1\n', '"""doc"""\n\nimport copy\nx = 1\n'),
        (
            "#!/usr/bin/env python\n# coding: utf-8\nx = 1\n",
            "#!/usr/bin/env python\n# coding: utf-8\nimport copy\nx = 1\n",
        ),
        ("from __future__ import annotations\nx = 1\n", "from __future__ import annotations\nimport copy\nx = 1\n"),
        (
            "import os  # note\r\nfrom a import (\r\n  b,\r\n)\r\nx = 1\r\n",
            "import os  # note\r\nfrom a import (\r\n  b,\r\n)\r\nimport copy\r\nx = 1\r\n",
        ),
        (
            "import os; import sys\nos.x = 1\nimport torch\n",
            "import os; import sys\nimport copy\nos.x = 1\nimport torch\n",
        ),
        ("import os\nimport copy\nx = copy.copy(1)\n", "import os\nimport copy\nx = copy.copy(1)\n"),
        ("x = y.copy(copy=1)\n", "import copy\nx = y.copy(copy=1)\n"),
        ("import os", "import os\nimport copy"),
    ],
)
def test_add_import(before: str, after: str) -> None:
    program = Program(before)
    draft = add_import(program.code, program.module, "copy")
    assert applied(program, draft) == after
    ast.parse(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from a import f\nx()\n", "x()\n"),
        ("from a import f, g\nx()\n", "from a import g\nx()\n"),
        ("from a import g, f\nx()\n", "from a import g\nx()\n"),
        ("from a import g as h, b as f\nx()\n", "from a import g as h\nx()\n"),
        ("from a import (\n    g,\n    f,\n)\nx()\n", "from a import (\n    g,\n)\nx()\n"),
        ("from a import (\n    f,\n    g,\n)\nx()\n", "from a import (\n    g,\n)\nx()\n"),
        ("import f\nimport g\n", "import g\n"),
        ("import a.b as f\nx()\n", "x()\n"),
        ("import g, a.b as f\nx()\n", "import g\nx()\n"),
        ("import g; from a import f\nx()\n", "import g\nx()\n"),
        ("from a import f  # why\nx()\n", None),
        ("from a import (\n    f,  # why\n    g,\n)\nx()\n", None),
        ("import f.g\nx()\n", None),
        ("from a import f as f\nx()\n", None),
        ("from a import f\nfrom b import f\nx()\n", None),
        ("try:\n    from a import f\nexcept ImportError:\n    pass\nx()\n", None),
    ],
)
def test_drop_import(before: str, after: str | None) -> None:
    program = Program(before)
    assert applied(program, drop_import(program.code, program.module, "f")) == (after or before)


@pytest.mark.parametrize(
    "text",
    [
        "from copy import copy\n",
        "import numpy as copy\n",
        "import os\ncopy = 1\n",
        "def g(copy): ...\n",
        "try:\n    import copy\nexcept ImportError:\n    copy = None\n",
    ],
)
def test_add_import_refuses_a_name_in_use(text: str) -> None:
    program = Program(text)
    assert add_import(program.code, program.module, "copy") is None


def test_add_import_knows_the_spellings_of_one_import() -> None:
    program = Program("import torch\nimport torch.nn.functional as F\n")
    assert add_import(program.code, program.module, "from torch.nn import functional as F") == Draft()
    assert applied(program, add_import(program.code, program.module, "torch.distributed")) == (
        "import torch\nimport torch.nn.functional as F\nimport torch.distributed\n"
    )


def test_drafts_join_and_become_unsafe_where_a_comment_is_lost() -> None:
    program = Program("import os\nf(a)  # note\nb()\n")
    drop = drop_statement(program.code, program.node("f(a)", SMALL))
    imported = add_import(program.code, program.module, "copy")
    fix = as_fix(program.source, "drop it", join(drop, imported), Applicability.SAFE)
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE
    assert program.source.rewritten(fix.edits).text == "import os\nimport copy\nb()\n"
    assert join(drop, None) is None


def test_as_fix_refuses_overlaps_and_masked_text() -> None:
    source = Program("abcdef\n").source
    assert as_fix(source, "", Draft((RawEdit(0, 3, "x"), RawEdit(2, 4, "y"))), Applicability.SAFE) is None
    assert as_fix(source, "", Draft(), Applicability.SAFE) is None
    masked = Source("n.ipynb", "_()\nf()\n", source.origin, cells=(Cell(1, 0, 7),), masked=((0, 3),))
    assert as_fix(masked, "", Draft((RawEdit(1, 2, "x"),)), Applicability.SAFE) is None


# Random programs ------------------------------------------------------------------------------------------------------

CALLS = st.sampled_from(
    [
        "f()", "f(a)", "f(a, b)", "f(a, k=1)", "f(\n  a,  # c\n  b,\n)", "f(a,\n  b)", "f(\n\ta\n)", "g(f(f(a)), *b, **c)",
        "f(  # c\n)", "f(x for x in y)", "f(a, \\\n b)", "f((a), (b),)",
    ]
)  # fmt: skip
LINES = st.one_of(
    CALLS,
    st.sampled_from(
        ["x = 1", "y = a + b", "a(); b()", "a() ;", 'z = """p\n  q\n"""', "pass", "x = a \\\n  + b", "x = 1;"]
    ),
)
COMMENTS = st.sampled_from(["", "", "  # note", "# é", "\t#"])


@st.composite
def blocks(draw: st.DrawFn, indent: str = "", depth: int = 0) -> str:
    unit = draw(st.sampled_from(["  ", "\t", "    "]))
    text = ""
    for _ in range(draw(st.integers(1, 4))):
        text += draw(st.sampled_from(["", "", "\n", f"{indent}# above\n", "\f\n"]))
        kind = draw(st.integers(0, 3)) if depth < 3 else 0
        if kind == 1:
            header = draw(
                st.sampled_from(
                    ["if x:", "for i in j:  # why", "with a as b:", "def h():", "class A:", "@d\n{0}def h():"]
                )
            )
            text += indent + header.format(indent) + "\n" + draw(blocks(indent + unit, depth + 1))
        elif kind == 2:
            text += f"{indent}if x: {draw(CALLS)}{draw(COMMENTS)}\n"
        else:
            text += indent + draw(LINES) + draw(COMMENTS) + "\n"
    return text


@st.composite
def programs(draw: st.DrawFn) -> str:
    text = draw(blocks())
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    text = draw(st.sampled_from(["", '"""doc"""\n', "import os\n", "\f"])) + text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def change(program: Program, draw: st.DrawFn) -> Draft | None:
    """A random change of a random node."""
    code = program.code
    pick = draw(st.integers(0, 9))
    statements = list(program.nodes((cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.SimpleStatementLine)))
    small = [node for node in statements if isinstance(node, cst.BaseSmallStatement)]
    calls = list(program.nodes(cst.Call))
    arguments = [node for call in calls for node in call.args]
    expressions = [argument.value for argument in arguments]
    if pick == 0:
        return drop_statement(code, draw(st.sampled_from(small)))
    if pick == 1:
        return insert_before(code, draw(st.sampled_from(statements)), "new()")
    if pick == 2:
        return insert_after(code, draw(st.sampled_from(statements)), "new()")
    if pick == 3:
        lines = [node for node in statements if isinstance(node, cst.BaseStatement)]
        return wrap_statements(code, [draw(st.sampled_from(lines))], "if new:")
    if pick == 4:
        return add_import(code, program.module, "copy")
    if pick == 9:
        move = draw(st.sampled_from([move_before, move_after]))
        return move(code, draw(st.sampled_from(small)), draw(st.sampled_from(statements)))
    assume(calls)
    if pick == 5:
        return insert_argument(code, draw(st.sampled_from(calls)), draw(st.sampled_from(["new=1", "new"])))
    assume(arguments)
    if pick == 6:
        argument = draw(st.sampled_from(arguments))
        return remove_argument(code, program.parent(argument), argument)
    if pick == 7:
        return wrap(
            code,
            draw(st.sampled_from(expressions)),
            *draw(st.sampled_from([("float(", ")"), ("", ".x"), ("not ", "")])),
        )
    return replace(code, draw(st.sampled_from(expressions)), draw(st.sampled_from(["a or b", "c", "1, 2", "-1"])))


@given(st.data())
def test_any_change_parses_and_leaves_the_rest_alone(data: st.DataObject) -> None:
    text = data.draw(programs())
    program = Program(text)
    draft = change(program, data.draw)
    if draft is None:
        return
    fix = as_fix(program.source, "", draft, Applicability.SAFE)
    result = program.apply(draft)
    Program(result)
    if fix is None:
        assert result == text
        return
    position = 0
    rest = result
    for one, following in pairwise((*fix.edits, None)):
        assert one is not None
        assert rest.startswith(text[position : one.start] + one.content)
        rest = rest[one.start - position + len(one.content) :]
        position = one.end
        assert following is None or following.start >= one.end
    assert rest == text[position:]
    assert result.count("#") == text.count("#") or fix.applicability is Applicability.UNSAFE


@settings(max_examples=settings.default.max_examples // 3)  # each is up to 60 programs
@given(programs())
def test_dropping_statements_ends_with_docstrings_and_pass(text: str) -> None:
    for _ in range(60):
        program = Program(text)
        droppable = [node for node in program.nodes(SMALL) if not isinstance(node, cst.Pass)]
        drafts = [draft for node in droppable if (draft := drop_statement(program.code, node))]
        if not drafts:
            break
        text = program.apply(drafts[len(drafts) // 2])
    program = Program(text)
    left = {type(node) for node in program.nodes(SMALL) if not _is_docstring(node)}
    assert left <= {cst.Pass}


def _is_docstring(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString)
