"""The tree's look-ups against plain recursion over libcst's own children, and nodes in the order of the text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from file_facts import facts_of, parses_here, real_programs, spelled
from hypothesis import assume, given
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, ParentNodeProvider
from programs import programs

from lightlint.facts.code.tree import Tree

_NESTED = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
_ASKED = (cst.Name, cst.Call, cst.Attribute, cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.Arg, cst.For)


def _below(tree: Tree, root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes below one, by libcst's children, as far as the tree knows them."""
    known = set(tree.nodes)
    pending = list(root.children)
    while pending:
        node = pending.pop()
        if node in known:
            yield node
        pending.extend(node.children)


def _own(tree: Tree, root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    known = set(tree.nodes)
    pending = list(root.children)
    while pending:
        node = pending.pop()
        if node in known:
            yield node
        if not isinstance(node, _NESTED):
            pending.extend(node.children)


def compare(text: str, seed: int) -> None:
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    parents, spans = wrapper.resolve(ParentNodeProvider), wrapper.resolve(ByteSpanPositionProvider)
    tree = Tree(wrapper.module)
    starts = [
        spans[node].start for node in tree.nodes if node in spans and isinstance(node, (cst.Name, cst.BaseNumber))
    ]
    assert starts == sorted(starts)
    for node in tree.nodes[1:]:
        assert tree.parent(node) is parents[node]
    for root in random.Random(seed).sample(tree.nodes, min(len(tree.nodes), 12)):
        below = set(_below(tree, root))
        assert {node for node in tree.nodes if tree.contains(root, node)} == {root, *below}
        for kind in _ASKED:
            assert set(tree.within(root, kind)) == {node for node in (root, *below) if type(node) is kind}
            assert set(tree.own(root, kind)) == {node for node in _own(tree, root) if type(node) is kind}
        assert tree.within(root, *_ASKED[:2]) == sorted(tree.within(root, *_ASKED[:2]), key=tree.order)


@given(programs())
def test_look_ups_agree_with_recursion(text: str) -> None:
    assume(parses_here(text))
    compare(text, len(text))


@pytest.mark.parametrize("path", real_programs()[:6], ids=lambda path: path.stem)
def test_look_ups_agree_with_recursion_on_real_programs(path: Path) -> None:
    compare(path.read_text(encoding="utf-8"), 1)


@pytest.mark.parametrize(
    ("program", "scope"),
    [
        ("def f(x=(here)): ...", "Module"),
        ("def f(x: (here)): ...", "Module"),
        ("def f() -> (here): ...", "Module"),
        ("@(here)\ndef f(): ...", "Module"),
        ("def f():\n    (here)", "FunctionDef"),
        ("class C((here)): ...", "Module"),
        ("class C(metaclass=(here)): ...", "Module"),
        ("@(here)\nclass C: ...", "Module"),
        ("class C:\n    (here)", "ClassDef"),
        ("class C:\n    def f(self, x=(here)): ...", "ClassDef"),
        ("lambda x=(here): x", "Module"),
        ("lambda: (here)", "Lambda"),
        ("def f(g=lambda x=(here): x): ...", "Module"),
        ("[(here) for x in y]", "ListComp"),
        ("[x for x in (here)]", "Module"),
        ("[x for x in y if (here)]", "ListComp"),
        ("[x for x in y for z in (here)]", "ListComp"),
        ("{x for x in [z for z in (here)]}", "Module"),
        ("(x for x in [z for z in y if (here)])", "ListComp"),
    ],
)
def test_code_is_evaluated_in_its_scope(program: str, scope: str) -> None:
    facts = facts_of(program)
    assert type(facts.tree.scope(spelled(facts, "(here)"))).__name__ == scope


@pytest.mark.parametrize(
    ("program", "loops"),
    [
        ("for x in (here): ...", 0),
        ("for x in y:\n    (here)", 1),
        ("for x in y: ...\nelse:\n    (here)", 0),
        ("while (here): ...", 1),
        ("while x: ...\nelse:\n    (here)", 0),
        ("while x:\n    for y in (here): ...", 1),
        ("for x in y:\n    while z:\n        (here)", 2),
        ("for x in y:\n    def f():\n        (here)", 0),
        ("for x in y:\n    lambda: (here)", 0),
    ],
)
def test_loops_repeat_what_is_in_them(program: str, loops: int) -> None:
    facts = facts_of(program)
    assert len(facts.tree.loops(spelled(facts, "(here)"))) == loops


def test_the_parameters_of_a_lambda_that_is_a_default_are_its_own() -> None:
    facts = facts_of("def f(g=lambda x: x): ...")
    [_, inner] = sorted(facts.tree.all(cst.Param), key=facts.tree.order)
    assert isinstance(facts.tree.scope(inner), cst.Lambda)
