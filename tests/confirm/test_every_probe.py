"""Pages and probes agree: what a page says is measured is built, and what is built is asked for."""

from __future__ import annotations

from lightlint.confirm.meters import module_of
from lightlint.confirm.probes import all_probes
from lightlint.pages import all_pages


def test_every_page_names_a_probe_that_is_there_and_every_probe_has_a_page() -> None:
    named = {page.confirm for page in all_pages().values() if page.confirm is not None}
    assert named == set(all_probes())


def test_meters_of_probes_are_there() -> None:
    from importlib.util import find_spec

    meters = {meter for probe in all_probes().values() for meter in probe.meters}
    assert {meter for meter in meters if find_spec(module_of(meter)) is None} == set()
