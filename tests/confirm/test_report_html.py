"""The HTML report: one file that loads nothing, with every verdict and the pictures that the records suffice for."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("plotly")

from recorded import run as run_of

from lightlint.confirm.records import Event, Run
from lightlint.confirm.reports.html import render
from lightlint.confirm.reports.pictures import pictures
from lightlint.confirm.reports.report import Judged, Report
from lightlint.confirm.verdict import Number, Outcome, Verdict
from lightlint.finding import Finding, Location, Tier


class _Outside(HTMLParser):
    """Collects what a page would load from elsewhere, and whether its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value for name, value in attrs if name in {"src", "href"} and value]
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _batches(rank: int) -> list[Event]:
    drawn = [
        {
            "kind": "batch",
            "loader": 0,
            "pass": 1,
            "number": number,
            "wait": 0.01,
            "digest": str(number),
            "time": number / 10,
        }
        for number in range(1, 5)
    ]
    state = [
        {"kind": "parameters", "when": "after", "step": number, "tensors": {"weight": f"{rank}{number}"}}
        for number in (1, 2)
    ]
    memory = [{"kind": "memory", "step": number, "rss": number * 2**20, "allocated": None} for number in (1, 2)]
    first = {"kind": "pass", "loader": 0, "number": 1, "indices": [0, 1, 2]}
    return [Event(each) for each in (first, *drawn, *state, *memory)]


@pytest.fixture
def run() -> Run:
    return run_of(_batches(0), _batches(1))


def test_the_page_loads_nothing_and_is_whole(run: Run) -> None:
    finding = Finding("LL401", "a-rule", Tier.ERROR, "it <is> wrong", "train.py", 0, 1, Location(3, 1), Location(3, 2))
    verdict = Verdict(Outcome.CONFIRMED, "100% & more", "2 ranks", (Number("samples", 3, rank=0),))
    page = render(Report("python train.py", "again", run, (Judged(finding, verdict),)))
    parser = _Outside()
    parser.feed(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert (parser.loads, parser.open) == ([], [])
    assert "it &lt;is&gt; wrong" in page
    assert "100% &amp; more" in page


def test_every_picture_is_drawn_from_its_records(run: Run) -> None:
    titles = re.findall(r"<h2>([^<]+)</h2>", pictures(run))
    assert titles == [
        "Memory over steps",
        "Samples drawn by each rank",
        "Where a step's time goes",
        "Parameters of the ranks",
    ]


def test_no_records_no_pictures() -> None:
    assert pictures(run_of([])) == ""
