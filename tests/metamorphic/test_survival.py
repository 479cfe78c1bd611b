"""No commit loses under a rewrite what the record says is found, nor fires where it is silent."""

from __future__ import annotations

import pytest

from lightlint.pages import all_pages

from .cases import all_page_cases
from .measure import known, measured, outcomes, share
from .rewrites import rewrites
from .table import SURVIVAL, digests, read_record, steps_back


def test_a_sample_survives_as_the_record_says() -> None:
    """An eighth of the rewrites for one example in twenty."""
    cases = [case for case in all_page_cases() if int(case.digest, 16) % 20 == 0]
    found = [one for case in cases for one in measured(case, share(case, rewrites().values(), 8))]
    assert len(found) > 25
    assert steps_back(read_record(), all_page_cases(), found) == []


FAMILIES = sorted({page.family for page in all_pages().values()} - {"lightlint"})


@pytest.mark.slow
@pytest.mark.parametrize("good", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_examples_survive_as_the_record_says(family: str, good: bool) -> None:
    """By family, so that workers share them; an eighth of the rewrites for each example, for `--write` measures them all."""
    cases = [case for case in all_page_cases() if case.good is good and case.where.startswith(f"{family}/")]
    found = [one for case in cases for one in measured(case, share(case, rewrites().values(), 8))]
    assert len(found) > 20
    assert steps_back(read_record(), all_page_cases(), found) == []


def test_record_and_table_know_every_rewrite() -> None:
    record = read_record()
    assert set(record.lost) <= set(rewrites())
    text = SURVIVAL.read_text()
    assert [name for name in rewrites() if f"| {name} |" not in text] == []


def test_a_new_loss_is_told_and_a_changed_page_is_not_held_to_its_record() -> None:
    case = next(case for case in all_page_cases() if not case.good)
    start = known(case)
    assert start is not None
    found = [each for each in outcomes(start, rewrites().values()) if each.lost or each.kept]
    gone = [type(each)(each.case, each.rewrite, each.where, (), (*each.kept, *each.lost), (), "") for each in found]
    record = read_record()
    record.pages = digests(all_page_cases())
    record.lost.clear()
    assert len(steps_back(record, all_page_cases(), gone)) >= len(found)
    record.pages[case.name] = "changed"
    assert steps_back(record, all_page_cases(), gone) == []
