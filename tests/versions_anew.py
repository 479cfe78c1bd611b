"""What is read of versions once in a process, forgotten: a command is a process, and reads it anew."""

from __future__ import annotations

from lightlint.facts.project.roots import nearest_with, root_of
from lightlint.facts.versions.evidence import places_in
from lightlint.facts.versions.hints import hints_in
from lightlint.facts.versions.pins import declared_within, entries_of, pins_in, pins_of_runs, pins_of_settings
from lightlint.facts.versions.pins.notebooks import pins_of_notebooks
from lightlint.facts.versions.pins.old_code import pins_of_old_code
from lightlint.facts.versions.pins.sent_to import folders_sent_to
from lightlint.facts.versions.targets import installed, target_in

_READ_ONCE = (
    pins_in,
    declared_within,
    pins_of_runs,
    pins_of_settings,
    pins_of_notebooks,
    pins_of_old_code,
    folders_sent_to,
    hints_in,
    entries_of,
    places_in,
    target_in,
    root_of,
    nearest_with,
    installed,
)


def forget_versions() -> None:
    for once in _READ_ONCE:
        once.cache_clear()
