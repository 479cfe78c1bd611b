"""Brings the data file up to what the wheels of some releases hold; columns and sections kept by hand stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from lightlint.facts.releases.api import FIRST
from lightlint.facts.versions.versions import Version
from timeline.document import Document
from timeline.history import ContradictionError, History, Lifetime, lifetime, signatures
from timeline.release import CLASSES, ENTRY_POINTS, Release

_HOOK = re.compile(r"(on|configure)_\w+|\w+_(step|dataloader)|(optimizer|transfer)_\w+|setup|teardown|prepare_data")
_CLASS_COLUMNS = ', replacement = "", note = "", effect = ""'
_TRAINER_COLUMNS = ', replacement = "", note = "", autofix = "none"'


@dataclass
class Merged:
    """The new text of the data file, what is new in it, and what a person has to settle."""

    text: str
    news: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)


def merge(text: str, releases: Sequence[Release]) -> Merged:
    """Rebuilds the generated parts of a data file.

    Args:
        text: the data file.
        releases: readings of wheels, at least one, in any order.
    """
    return _Merge(text, sorted(releases, key=lambda release: Version(release.version))).run()


@dataclass(frozen=True)
class _Names:
    """Where the names of one kind stand: `added` and `removed` are sections, `columns` what a new removal gets."""

    added: str
    removed: str
    columns: str
    lists_all: bool = False
    dates_removed: bool = True


class _Merge:
    def __init__(self, text: str, releases: Sequence[Release]) -> None:
        self._document = Document(text)
        self._releases = [(Version(release.version), release) for release in releases]
        self._merged = Merged(text)

    def run(self) -> Merged:
        self._range()
        self._keyword_only()
        self._names(
            _Names("trainer_init.current", "trainer_init.removed", _TRAINER_COLUMNS, lists_all=True),
            lambda release: _plain(release.trainer_arguments),
        )
        for section in CLASSES:
            self._class(section)
        self._entry_points()
        self._names(
            _Names("", "trainer_methods.removed", ', replacement = ""', dates_removed=False),
            lambda release: release.trainer_names,
        )
        self._names(
            _Names("log_kwargs.added", "log_kwargs.removed", ', replacement = ""', dates_removed=False),
            lambda release: _plain(release.members["lightning_module"].signatures.get("log", ())),
        )
        self._merged.text = self._document.text
        return self._merged

    def _range(self) -> None:
        top = self._document.table("")
        for key, pick, version in (
            ("first_version", min, self._releases[0][0]),
            ("last_version", max, self._releases[-1][0]),
        ):
            known = Version(top[key])
            if pick(known, version) != known:
                self._document.set_value("", key, f'"{version}"')
                self._merged.news.append(f"{key}: {version}")

    def _keyword_only(self) -> None:
        known = Lifetime(Version(self._document.table("trainer_init")["keyword_only_since"]))
        seen = [(version, release.trainer_is_keyword_only) for version, release in self._releases]
        made = self._lifetime("trainer_init", "keyword_only_since", seen, known)
        if made != known:
            self._document.set_value("trainer_init", "keyword_only_since", f'"{made.added}"')

    def _names(self, names: _Names, of: Callable[[Release], Set[str]]) -> None:
        added = self._document.table(names.added) if names.added else {}
        removed = self._document.table(names.removed)
        held = [(version, of(release)) for version, release in self._releases]
        for name in sorted({*added, *removed}.union(*(found for _, found in held))):
            entry = removed.get(name, {})
            untold = None if entry else FIRST  # what is listed as neither added nor removed is as old as the data
            known = Lifetime(_version(added.get(name, entry.get("added"))) or untold, _version(entry.get("removed")))
            seen = [(version, name in found) for version, found in held]
            if added.get(name) == "unreleased" and not any(present for _, present in seen):
                continue
            made = self._lifetime(names.removed, name, seen, known)
            if made.removed:
                self._put_removed(names, name, made, known, is_new=name not in removed, was_added=name in added)
            elif names.added and made.added and (made.added > FIRST or names.lists_all):
                self._put_added(names.added, name, made.added, added.get(name))
            elif name in added:
                self._document.drop(names.added, name)

    def _put_added(self, section: str, name: str, version: Version, known: str | None) -> None:
        if known != str(version):
            self._document.set_value(section, name, f'"{version}"')
            self._merged.news.append(f"[{section}] {name}: {version}" + (f", was {known}" if known else ""))

    def _put_removed(
        self, names: _Names, name: str, made: Lifetime, known: Lifetime, *, is_new: bool, was_added: bool
    ) -> None:
        if was_added:
            self._document.drop(names.added, name)
        if is_new:
            added = f'added = "{made.added}", ' if names.dates_removed else ""
            self._document.set_value(names.removed, name, f'{{ {added}removed = "{made.removed}"{names.columns} }}')
            self._merged.news.append(f"[{names.removed}] {name}: {made.removed}, fill in its columns")
            return
        for key, new, old in (("added", made.added, known.added), ("removed", made.removed, known.removed)):
            if new != old and (key == "removed" or names.dates_removed):
                self._document.set_field(names.removed, name, key, str(new))
                self._merged.news.append(f"[{names.removed}] {name}: {key} {new}, was {old}")

    def _class(self, section: str) -> None:
        self._names(
            _Names(f"{section}.added", f"{section}.removed", _CLASS_COLUMNS),
            lambda release: release.members[section].names,
        )
        table = self._document.table(section)
        last = self._releases[-1][1].members[section]
        is_last = self._releases[-1][0] >= Version(self._document.table("")["last_version"])
        hooks = {name for name in last.signatures if _HOOK.fullmatch(name)} - table["removed"].keys()
        for name in sorted({*table["signature"], *table["signature_history"], *hooks}):
            since = Version(table.get("added", {}).get(name, FIRST.text))
            seen = [
                (version, release.members[section].signatures[name])
                for version, release in self._releases
                if name in release.members[section].signatures
            ]
            known = _history(table, name, since)
            is_older = bool(seen) and seen[0][0] == self._releases[0][0]
            made = signatures(seen, known, known[0][0] if known else since if is_older else seen[0][0])
            self._put_signature(section, name, made, known, is_gone=is_last and name not in last.signatures)

    def _put_signature(self, section: str, name: str, made: History, known: History, *, is_gone: bool) -> None:
        table = self._document.table(section)
        current, past = f"{section}.signature", f"{section}.signature_history"
        if made != known:
            self._merged.news.append(f"[{current}] {name}: {_written(made)}")
        is_listed = name in table["signature"]
        if is_gone and is_listed:
            self._document.drop(current, name)
        elif not is_gone and (is_listed or not known) and table["signature"].get(name) != list(made[-1][1]):
            self._document.set_value(current, name, json.dumps(made[-1][1]))
        told = len(made) > 1 or (is_gone and is_listed)
        if told and (made != known or name not in table["signature_history"]):
            self._document.set_value(past, name, _written(made))

    def _entry_points(self) -> None:
        document = self._document
        added, removed = document.table("trainer_call_kwargs.added"), document.table("trainer_call_kwargs.removed")
        for method in ENTRY_POINTS:
            have = [(v, _plain(r.entry_points[method])) for v, r in self._releases if method in r.entry_points]
            dates = added.get(method, {})
            for name in sorted({*dates}.union(*(found for _, found in have))):
                key = f"{method}_{name}"
                known = Lifetime(_version(dates.get(name)) or FIRST, _version(removed.get(key, {}).get("removed")))
                made = self._lifetime(f"trainer_call_kwargs.{method}", name, [(v, name in f) for v, f in have], known)
                if made.removed != known.removed and key in removed:
                    document.set_field("trainer_call_kwargs.removed", key, "removed", str(made.removed))
                elif made.removed and key not in removed:
                    entry = f'{{ method = "{method}", name = "{name}", removed = "{made.removed}", replacement = "" }}'
                    document.set_value("trainer_call_kwargs.removed", key, entry)
                elif made.added != known.added and not made.removed:
                    document.set_field("trainer_call_kwargs.added", method, name, str(made.added))
                else:
                    continue
                self._merged.news.append(f"[trainer_call_kwargs] {method}({name}): {made.added} to {made.removed}")

    def _lifetime(self, section: str, name: str, seen: Sequence[tuple[Version, bool]], known: Lifetime) -> Lifetime:
        try:
            return lifetime(seen, known)
        except ContradictionError as error:
            self._merged.contradictions.append(f"[{section}] {name}: {error}")
            return known


def _version(text: str | None) -> Version | None:
    return Version(text) if text and text != "unreleased" else None


def _plain(parameters: Iterable[str]) -> Set[str]:
    return {name.strip("*?") for name in parameters}


def _history(table: Mapping[str, Any], name: str, since: Version) -> History:
    entries = table["signature_history"].get(name)
    if entries:
        return [(Version(start), tuple(names)) for start, names in entries]
    return [(since, tuple(table["signature"][name]))] if name in table["signature"] else []


def _written(history: History) -> str:
    return "[ " + ", ".join(f'["{since}", {json.dumps(names)}]' for since, names in history) + " ]"
