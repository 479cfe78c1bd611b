"""What a fix makes of rewritten programs parses, is clean of what was repaired, brings nothing new, and is left alone then."""

from __future__ import annotations

import pytest

from .measure import share
from .repairs import broken, repairable
from .rewrites import rewrites

_PARTS = 100  # all of it takes hours


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_fixes_of_rewritten_examples_are_right(part: int) -> None:
    cases = [case for number, case in enumerate(repairable()) if number % 4 == part]
    assert len(cases) > 50
    wrong = [each for case in cases for each in broken(case, share(case, rewrites().values(), _PARTS))]
    assert [str(each) for each in wrong] == []
