"""Spans against the text: what a node's slice says when it is parsed alone, whatever ends the lines."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest
from file_facts import facts_of, parses_here, real_programs
from hypothesis import assume, given
from hypothesis import strategies as st
from programs import programs

from lightlint.facts.file import FileFacts

_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


def meaning(code: str) -> str:
    return ast.dump(ast.parse(code))


def compare(facts: FileFacts) -> int:
    """Parse the slice of each whole expression and statement again; how many there were."""
    text, compared = facts.source.text, 0
    for node in facts.tree.nodes:
        start, end = facts.span(node)
        assert 0 <= start <= end <= len(text)
        above = facts.tree.parent(node)
        code = cst.Module([]).code_for_node
        if isinstance(node, cst.BaseExpression) and isinstance(above, (cst.Arg, cst.Return, cst.Expr, cst.Await)):
            assert meaning(f"({text[start:end]}\n)") == meaning(f"({code(node)}\n)")
            compared += 1
        elif isinstance(node, _STATEMENTS) and isinstance(above, cst.Module):
            # a definition's span begins behind its decorators
            plain = node.with_changes(decorators=[]) if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else node
            assert meaning(text[start:end]) == meaning(code(plain))
            compared += 1
    return compared


@given(programs(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "# é\n", "x = '𝄞'\n"]))
def test_slices_are_the_nodes(text: str, newline: str, before: str) -> None:
    assume(parses_here(text))
    assert compare(facts_of((before + text).replace("\n", newline))) > 0


@pytest.mark.parametrize("path", real_programs()[:8], ids=lambda path: path.stem)
def test_slices_of_real_programs_are_the_nodes(path: Path) -> None:
    assert compare(facts_of(path.read_text(encoding="utf-8"))) > 0


@pytest.mark.parametrize(
    ("text", "kind", "slice_"),
    [
        ("x = ((a + b)) # why\n", cst.BinaryOperation, "((a + b))"),
        ("f(a, # why\n  b)\n", cst.Call, "f(a, # why\n  b)"),
        ("é = f('ü')\n", cst.Call, "f('ü')"),
        ("\fé = f(1)\n", cst.Call, "f(1)"),
        ("@a\ndef f(): ...\n", cst.FunctionDef, "def f(): ..."),
        ("f(x=1, y=2)\n", cst.Arg, "x=1"),
    ],
)
def test_a_span_has_the_brackets_and_not_the_comments(text: str, kind: type[cst.CSTNode], slice_: str) -> None:
    facts = facts_of(text)
    node = facts.tree.all(kind)[0]
    assert text[slice(*facts.span(node))] == slice_
