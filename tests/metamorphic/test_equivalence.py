"""Rewritten programs do what the original does: random programs are run both ways and what they print is compared."""

from __future__ import annotations

import contextlib
import io
import sys
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .cases import Case
from .measure import rewritten
from .random_programs import running_programs
from .rewrites import Rewrite, rewrites


def run(files: dict[str, str], name: str) -> tuple[str, str]:
    """What a program prints, and the error it ends with."""
    printed = io.StringIO()
    others = [other.removesuffix(".py") for other in files if other != name]
    error = ""
    try:
        for other in reversed(others):
            module = types.ModuleType(other)
            sys.modules[other] = module
            exec(compile(files[f"{other}.py"], other, "exec"), vars(module))
        main = types.ModuleType("random_program")
        sys.modules["random_program"] = main
        with contextlib.redirect_stdout(printed):
            exec(compile(files[name], name, "exec"), vars(main))
    except Exception as raised:
        error = f"{type(raised).__name__}"
    finally:
        for each in [*others, "random_program"]:
            sys.modules.pop(each, None)
    return printed.getvalue(), error


def compared(rewrite: Rewrite, text: str) -> bool:
    """Whether the rewrite changes the program; the two are run and must do the same."""
    case = Case("random", "random", {"program.py": text}, "program.py", (), good=True)
    files = rewritten(case, rewrite, None)
    if files is None:
        return False
    texts = {name: changed for name, (changed, _) in files.items()}
    assert run(texts, "program.py") == run(case.files, "program.py"), texts["program.py"]
    return True


@given(text=running_programs(), rewrite=st.sampled_from(list(rewrites().values())))
def test_rewritten_program_does_the_same(text: str, rewrite: Rewrite) -> None:
    compared(rewrite, text)


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", rewrites().values(), ids=lambda rewrite: rewrite.name)
def test_each_rewrite_does_the_same(rewrite: Rewrite) -> None:
    @settings(max_examples=settings.default.max_examples // 3)  # for each of the rewrites
    @given(text=running_programs())
    def compare(text: str) -> None:
        compared(rewrite, text)

    compare()
