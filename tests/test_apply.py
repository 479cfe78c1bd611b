"""Fixes in rounds: order, overlap, what is taken back, and what is told of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import Program, Utf8

from lightlint.finding import Applicability, Finding, Fix, Tier
from lightlint.fixes.apply import ROUNDS, Fixed, fix_source
from lightlint.fixes.edits import Draft, RawEdit, add_import, as_fix, drop_statement, insert_argument, join
from lightlint.sources.source import Cell, Source

Rule = Callable[[Source], Iterator[Finding]]


def found(source: Source, code: str, start: int, end: int, fix: Fix | None, message: str = "is wrong") -> Finding:
    where, until = source.locate(start), source.locate(end)
    return Finding(code, f"rule-{code}", Tier.WARNING, message, source.filename, start, end, where, until, fix=fix)


def substitution(code: str, pattern: str, content: str, how: Applicability = Applicability.SAFE) -> Rule:
    """A rule that finds a pattern and replaces it."""

    def rule(source: Source) -> Iterator[Finding]:
        for match in re.finditer(pattern, source.text):
            draft = Draft((RawEdit(*match.span(), match.expand(content)),))
            yield found(source, code, *match.span(), as_fix(source, "replace it", draft, how))

    return rule


def calls(code: str, name: str, drafted: Callable[[Program, cst.Call], Draft | None]) -> Rule:
    """A rule that finds the calls of a function, with the draft that a test gives."""

    def rule(source: Source) -> Iterator[Finding]:
        program = Program(source)
        for call in program.nodes(cst.Call):
            assert isinstance(call, cst.Call)
            if isinstance(call.func, cst.Name) and call.func.value == name:
                draft = drafted(program, call)
                if draft is not None:
                    yield found(source, code, *program.span(call), as_fix(source, "", draft, Applicability.SAFE))

    return rule


def dropped(program: Program, call: cst.Call) -> Draft | None:
    expression = program.parent(call)
    return drop_statement(program.code, expression) if isinstance(expression, cst.Expr) else None


def only(program: Program, call: cst.Call) -> Draft | None:
    return insert_argument(program.code, call, "weights_only=True")


def parses(text: str) -> bool:
    try:
        cst.parse_module(text)
    except cst.ParserSyntaxError:
        return False
    return True


def fixed(text: str | Source, *rules: Rule, unsafe: bool = False) -> Fixed:
    source = Source("a.py", text, Utf8()) if isinstance(text, str) else text

    def lint(current: Source) -> Sequence[Finding]:
        return [finding for rule in rules for finding in rule(current)]

    result = fix_source(source, lint, unsafe=unsafe, parses=parses)
    assert parses(result.source.text)
    assert list(result.left) == list(lint(result.source))
    return result


def messages(result: Fixed) -> list[str]:
    assert {finding.code for finding in result.problems} <= {"LL003"}
    return [finding.message for finding in result.problems]


def test_nested_calls_are_both_fixed() -> None:
    rule = calls("LL901", "load", only)
    result = fixed('x = load(load("z"))\n', rule)
    assert result.source.text == 'x = load(load("z", weights_only=True), weights_only=True)\n'
    assert (len(result.applied), result.left, result.problems) == (2, (), ())
    assert fixed(result.source, rule).source is result.source


def test_a_call_whose_bracket_has_its_own_line_keeps_its_layout() -> None:
    result = fixed('x = load(\n    "x",  # keep\n)\n', calls("LL901", "load", only))
    assert result.source.text == 'x = load(\n    "x",  # keep\n    weights_only=True,\n)\n'


def test_overlapping_fixes_wait_for_the_next_round() -> None:
    result = fixed("abc = 1\n", substitution("LL902", "abc", "b"), substitution("LL901", "b = 1|bc", "x = 2"))
    assert result.source.text == "x = 2\n"
    assert [finding.code for finding in result.applied] == ["LL902", "LL901"]


def test_edits_of_one_fix_are_applied_together_or_not_at_all() -> None:
    def imported(program: Program, call: cst.Call) -> Draft | None:
        return None if call.args else join(only(program, call), add_import(program.code, program.module, "copy"))

    result = fixed("import os\nload()\nload()\n", calls("LL901", "load", imported))
    assert result.source.text == "import os\nimport copy\nload(weights_only=True)\nload(weights_only=True)\n"
    assert result.problems == ()


def test_an_insertion_touching_another_fix_waits() -> None:
    def once(code: str, content: str) -> Rule:
        def rule(source: Source) -> Iterator[Finding]:
            if content not in source.text:
                fix = as_fix(source, "", Draft((RawEdit(0, 0, content),)), Applicability.SAFE)
                yield found(source, code, 0, 1, fix, f"lacks {content.strip()}")

        return rule

    result = fixed("x\n", once("LL902", "b\n"), once("LL901", "a\n"), substitution("LL903", "x", "y"))
    assert result.source.text == "b\na\ny\n"
    assert [finding.code for finding in result.applied] == ["LL901", "LL902", "LL903"]


def test_identical_fixes_of_two_findings_are_applied_once() -> None:
    result = fixed("old = 1\n", substitution("LL901", "old", "new"), substitution("LL902", "old", "new"))
    assert result.source.text == "new = 1\n"
    assert [finding.code for finding in result.applied] == ["LL901", "LL902"]


@pytest.mark.parametrize(("unsafe", "text"), [(False, "a = old\n"), (True, "a = new\n")])
def test_unsafe_fixes_are_applied_on_request(unsafe: bool, text: str) -> None:
    result = fixed("a = old\n", substitution("LL901", "old", "new", Applicability.UNSAFE), unsafe=unsafe)
    assert result.source.text == text
    assert len(result.left) == (0 if unsafe else 1)


def test_a_fix_that_breaks_the_text_is_taken_back_alone() -> None:
    result = fixed(
        "a = old\nb = bad\nc = old\n", substitution("LL901", "old", "new"), substitution("LL902", "bad", "(")
    )
    assert result.source.text == "a = new\nb = bad\nc = new\n"
    assert [finding.code for finding in result.left] == ["LL902"]
    assert messages(result) == ["the fix of `rule-LL902` (LL902) would leave text that does not parse"]
    assert result.problems[0].location == result.left[0].location


def test_statements_that_may_not_all_go_at_once_are_no_culprits() -> None:
    result = fixed("if x:\n    f()\n    f()\n\nf()\n", calls("LL901", "f", dropped))
    assert result.source.text == "if x:\n    pass\n\n"
    assert (len(result.applied), result.problems) == (3, ())


def test_a_fix_that_does_not_remove_its_finding_is_taken_back() -> None:
    result = fixed("a = old\nb = x\n", substitution("LL901", "(old)", r"\1  "), substitution("LL902", "x", "y"))
    assert result.source.text == "a = old\nb = y\n"
    assert messages(result) == ["the fix of `rule-LL901` (LL901) does not remove what was found"]
    assert [finding.code for finding in result.applied] == ["LL902"]


def test_equal_findings_that_move_up_are_not_mistaken_for_a_fix_that_failed() -> None:
    def first_only(source: Source) -> Iterator[Finding]:
        for number, finding in enumerate(calls("LL901", "f", dropped)(source)):
            yield finding if number == 0 else found(source, "LL901", finding.start, finding.end, None)

    result = fixed("f()\nf()\nf()\n", first_only)
    assert (result.source.text, result.problems) == ("", ())


def test_fixes_that_undo_each_other_are_rolled_back() -> None:
    result = fixed(
        "a = tic\nb = old\n",
        substitution("LL901", "tic", "tac"),
        substitution("LL902", "tac", "tic"),
        substitution("LL903", "old", "new"),
    )
    assert result.source.text == "a = tac\nb = new\n"
    assert messages(result) == ["the fixes of `rule-LL901` (LL901) and `rule-LL902` (LL902) undo each other"]
    assert [finding.code for finding in result.applied] == ["LL901", "LL903"]


def test_rounds_end() -> None:
    def growing(source: Source) -> Iterator[Finding]:
        end = len(source.text)
        fix = as_fix(source, "", Draft((RawEdit(end, end, "x\n"),)), Applicability.SAFE)
        yield found(source, "LL901", 0, 1, fix, f"{end} is too short")

    result = fixed("x\n", growing)
    assert result.source.text == "x\n" * (ROUNDS + 1)
    assert messages(result) == [f"the fixes of `rule-LL901` (LL901) were still due after {ROUNDS} rounds"]


def test_nothing_to_do_gives_the_source_back() -> None:
    source = Source("a.py", "x = 1\n", Utf8())
    assert fixed(source, substitution("LL901", "old", "new")).source is source


def test_problems_in_a_notebook_name_the_cell() -> None:
    source = Source("n.ipynb", "a = 1\nb = bad\n", Utf8(), cells=(Cell(1, 0, 5), Cell(3, 6, 13)))
    (problem,) = fixed(source, substitution("LL901", "bad", "(")).problems
    assert (problem.cell, problem.location.row) == (3, 1)


@given(
    st.text("abcd", max_size=12),
    st.lists(st.tuples(st.text("abcd", min_size=1, max_size=3), st.text("abcd(", max_size=2)), max_size=4),
)
def test_any_rules_come_to_an_end(text: str, pairs: list[tuple[str, str]]) -> None:
    rules = [substitution(f"LL90{number}", *pair) for number, pair in enumerate(pairs)]
    result = fixed(f"x = '{text}'\n", *rules)
    if not result.problems:
        assert fixed(result.source, *rules).source is result.source


@given(
    st.recursive(
        st.just("x"),
        lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"load({', '.join(parts)})"),
        max_leaves=6,
    )
)
def test_nested_calls_are_all_fixed(expression: str) -> None:
    result = fixed(f"y = {expression}\n", calls("LL901", "load", only))
    assert result.source.text.count("weights_only=True") == expression.count("load")
    assert (result.left, result.problems) == ((), ())
