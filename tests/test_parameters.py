"""Parameter edits change a signature as Python itself reads it, and nothing else."""

from __future__ import annotations

import ast

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import Program

from lightlint.fixes.edits import Draft, insert_default, insert_parameter, remove_parameter


def function_of(program: Program) -> cst.FunctionDef:
    function = next(program.nodes(cst.FunctionDef))
    assert isinstance(function, cst.FunctionDef)
    return function


def parameter_of(function: cst.FunctionDef, name: str) -> cst.Param:
    params = function.params
    return next(p for p in (*params.posonly_params, *params.params, *params.kwonly_params) if p.name.value == name)


def applied(program: Program, draft: Draft | None) -> str | None:
    return None if draft is None else program.apply(draft)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(self, x):\n    pass\n", "def f(self):\n    pass\n"),
        ("def f(self, x=1, y=2):\n    pass\n", "def f(self, y=2):\n    pass\n"),
        ("def f(self, x: int = 1) -> None: pass\n", "def f(self) -> None: pass\n"),
        ("def f(\n    self,\n    x,\n):\n    pass\n", "def f(\n    self,\n):\n    pass\n"),
        ("def f(\n    self,\n    x: int\n):\n    pass\n", "def f(\n    self\n):\n    pass\n"),
        ("def f(self, *, x):\n    pass\n", None),
        ("def f(self, /, x):\n    pass\n", None),
        ("def f(x):\n    pass\n", None),
    ],
)
def test_parameter_goes_with_its_comma(before: str, after: str | None) -> None:
    program = Program(before)
    function = function_of(program)
    assert applied(program, remove_parameter(program.code, function, parameter_of(function, "x"))) == after


def test_removal_tells_of_a_comment() -> None:
    program = Program("def f(\n    self,  # the module\n    x,\n):\n    pass\n")
    function = function_of(program)
    draft = remove_parameter(program.code, function, parameter_of(function, "x"))
    assert draft is not None
    assert draft.drops_comment


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(self): pass\n", "def f(self, stage=None): pass\n"),
        ("def f(self, x: int = 1): pass\n", "def f(self, x: int = 1, stage=None): pass\n"),
        ("def f(self, *args, **kwargs): pass\n", "def f(self, stage=None, *args, **kwargs): pass\n"),
        ("def f(self, *, x): pass\n", "def f(self, stage=None, *, x): pass\n"),
        ("def f(\n    self,\n): pass\n", "def f(\n    self, stage=None,\n): pass\n"),
        ("def f(): pass\n", None),
    ],
)
def test_parameter_comes_behind_the_positional_ones(before: str, after: str | None) -> None:
    program = Program(before)
    assert applied(program, insert_parameter(program.code, function_of(program), "stage=None")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(self, x): pass\n", "def f(self, x=0): pass\n"),
        ("def f(self, x: int): pass\n", "def f(self, x: int = 0): pass\n"),
        ("def f(self, x=1): pass\n", None),
    ],
)
def test_default_is_written_as_the_annotation_asks(before: str, after: str | None) -> None:
    program = Program(before)
    function = function_of(program)
    assert applied(program, insert_default(program.code, parameter_of(function, "x"), "0")) == after


@given(st.lists(st.sampled_from(["", ": int", ": dict[str, int]"]), min_size=2, max_size=5), st.data())
def test_any_parameter_but_the_first_goes_alone(annotations: list[str], data: st.DataObject) -> None:
    names = [f"p{index}" for index in range(len(annotations))]
    listed = ", ".join(name + annotation for name, annotation in zip(names, annotations, strict=True))
    gone = data.draw(st.sampled_from(names[1:]))
    program = Program(f"def f({listed}):\n    return 1\n")
    function = function_of(program)
    text = applied(program, remove_parameter(program.code, function, parameter_of(function, gone)))
    assert text is not None
    parsed = ast.parse(text).body[0]
    assert isinstance(parsed, ast.FunctionDef)
    assert [each.arg for each in parsed.args.args] == [name for name in names if name != gone]
