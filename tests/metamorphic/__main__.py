"""Measure what survives rewriting.

python -m tests.metamorphic                      the table of all rule pages (some minutes)
python -m tests.metamorphic --write              the same, kept in survival.md and losses.toml
python -m tests.metamorphic --lost dict          the rewritten programs in which a finding is lost
python -m tests.metamorphic --fired              the right programs that fire after a rewrite
python -m tests.metamorphic --rule softmax-before-cross-entropy --lost dict
python -m tests.metamorphic --cases FOLDER       labelled cases in the place of the rule pages
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from .cases import Case, all_page_cases, folder_cases
from .measure import Outcome, measured
from .rewrites import rewrites
from .table import HEAD, SURVIVAL, read_record, record_of, rows, shown, steps_back, write_record


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.metamorphic", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.description = __doc__
    parser.add_argument("--write", action="store_true", help="keep the table and the losses")
    parser.add_argument(
        "--lost", metavar="REWRITE", help="show what this rewrite loses (`all`: every rewrite, without text)"
    )
    parser.add_argument("--fired", action="store_true", help="show the right programs that fire")
    parser.add_argument("--rule", nargs="*", default=[], help="only these rules (names or codes)")
    parser.add_argument("--cases", type=Path, help="a folder of labelled cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes work")
    given = parser.parse_args(words)
    chosen = rewrites()
    if given.lost and given.lost != "all":
        if given.lost not in chosen:
            parser.error(f"no rewrite {given.lost!r}; there are {', '.join(chosen)}")
        chosen = {given.lost: chosen[given.lost]}
    if given.write and (given.cases or given.rule or given.lost):
        parser.error("--write measures all pages and all rewrites")
    cases = list(folder_cases(given.cases)) if given.cases else all_page_cases()
    cases = [case for case in cases if not given.rule or {case.name, *case.rules} & set(given.rule)]
    with multiprocessing.Pool(given.jobs) as pool:
        work = partial(_measured, tuple(chosen))
        found = [one for part in pool.imap(work, cases, chunksize=8) for one in part]
    for each in found:
        if given.lost and each.lost:
            _show(each, text=given.lost != "all")
        if given.fired and each.fired:
            _show(each, text=True)
    if given.write:
        SURVIVAL.write_text(HEAD + shown(rows(found), chosen))
        write_record(record_of(cases, found))
        return 0
    print(shown(rows(found), chosen))
    if not given.cases:
        print("\n".join(steps_back(read_record(), cases, found)))
    return 0


def _measured(names: tuple[str, ...], case: Case) -> list[Outcome]:
    every = rewrites()
    return measured(case, [every[name] for name in names])


def _show(outcome: Outcome, *, text: bool) -> None:
    what = ", ".join(map(str, outcome.lost)) or "; ".join(
        f"{f.code} {f.location.row}: {f.message}" for f in outcome.fired
    )
    print(f"{outcome.rewrite}, {outcome.where}: {outcome.case.name} {outcome.case.where}, row {what}")
    if text:
        print("    " + outcome.text.replace("\n", "\n    "))


if __name__ == "__main__":
    raise SystemExit(main())
