"""The data file as lines: entries are changed where they stand, comments and everything else stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

_HEADER = re.compile(r"\[([\w.]+)\]")
_ENTRY = re.compile(r"(\w+) = ")


class Document:
    """A TOML text with one entry a line, and its edits."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._data = tomllib.loads(text)

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def table(self, section: str) -> Mapping[str, Any]:
        """What a section held at the start; "" is the top of the file."""
        found: Any = self._data
        for part in filter(None, section.split(".")):
            found = found.get(part, {})
        return found  # type: ignore[no-any-return]

    def set_field(self, section: str, key: str, field: str, value: str) -> None:
        """Puts another text at `field` of an entry that is an inline table; a new field is the last of it."""
        if key not in self._entries(section):
            self.set_value(section, key, f'{{ {field} = "{value}" }}')
            return
        place = self._place(section, key)
        line, count = re.subn(rf'(\b{field} = )"[^"]*"', rf'\g<1>"{value}"', self._lines[place], count=1)
        self._lines[place] = line if count else re.sub(r" \}", f', {field} = "{value}" }}', line, count=1)

    def set_value(self, section: str, key: str, value: str) -> None:
        """Puts an entry's value, written as TOML, in the place of the old one, or at a new entry's alphabetic place."""
        if key in self._entries(section):
            place = self._place(section, key)
            comment = re.search(r"\s+#[^\"\]}]*$", self._lines[place])
            self._lines[place] = f"{key} = {value}" + (comment[0] if comment else "")
            return
        entries = self._entries(section)
        later = [place for name, place in entries.items() if name > key]
        place = min(later) if later else max(entries.values(), default=self._header(section)) + 1
        self._lines.insert(place, f"{key} = {value}")

    def drop(self, section: str, key: str) -> None:
        """Takes an entry out."""
        del self._lines[self._place(section, key)]

    def _place(self, section: str, key: str) -> int:
        return self._entries(section)[key]

    def _header(self, section: str) -> int:
        places = [place for place, line in enumerate(self._lines) if _title(line) == section]
        if not places:
            raise ValueError(f"the data file has no section [{section}]")
        return places[0]

    def _entries(self, section: str) -> dict[str, int]:
        """The line of each entry of a section."""
        found: dict[str, int] = {}
        start = self._header(section) + 1 if section else 0
        for place, line in enumerate(self._lines[start:], start):
            if _title(line) is not None:
                break
            if match := _ENTRY.match(line):
                found[match[1]] = place
        return found


def _title(line: str) -> str | None:
    match = _HEADER.match(line)
    return match[1] if match else None
