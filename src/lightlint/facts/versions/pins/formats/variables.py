"""What the variables of a shell text, a Dockerfile or a workflow stand for, as far as it says so itself."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from itertools import islice, product

_SET = re.compile(
    r"""^\s*(?:-\s+)?(?:(?:export|ARG|ENV|set|env|RUN)\s+)*\$?(?:env:)?([A-Za-z_][\w-]*)\s*(?:\?=|:=|=|:\s)\s*["']?([\w.+~^*@=<>,!/:-]+)["']?\s*(?:\\|&&.*|;.*|\#.*)?$"""
)
_SET_WITH_SPACE = re.compile(r"^\s*ENV\s+(\w+)\s+([\w.+-]+)\s*$")
_MORE = re.compile(r"""\b([A-Za-z_]\w*)=["']?([\w.+-]+)["']?""")
_LIST = re.compile(r"^\s*(?:-\s+)?([A-Za-z_][\w-]*)\s*:\s*\[([^\]]*)\]")
_OPENED = re.compile(r"^\s*([A-Za-z_][\w-]*)\s*:\s*$")
_ITEM = re.compile(r"""^\s*-\s*["']?([\w.+-]+)["']?\s*$""")
_USE = re.compile(r"\$\{\{\s*(?:\w+\.)*([\w-]+)\s*\}\}|\$\{(\w+)(?::?-([^}]*))?\}|\$\((\w+)\)|\$(?:env:)?(\w+)|%(\w+)%")
_MOST, _DEEPEST = 12, 4


class Variables:
    """The values that a text gives to names: one, or as many as a matrix lists.

    Args:
        text: the whole of it.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _values(self) -> dict[str, list[str]]:
        """What each name is set to; most texts ask for none."""
        values: dict[str, list[str]] = defaultdict(list)
        opened = ""
        for line in self._text.splitlines():
            if found := _SET.match(line) or _SET_WITH_SPACE.match(line):
                values[found[1]].append(found[2])
            elif re.match(r"\s*(?:ARG|ENV|export)\s", line):
                for name, value in _MORE.findall(line):
                    values[name].append(value)
            elif found := _LIST.match(line):
                values[found[1]] += [each.strip().strip("\"'") for each in found[2].split(",")]
            if opened and (item := _ITEM.match(line)):
                values[opened].append(item[1])
            else:
                start = _OPENED.match(line)
                opened = start[1] if start else ""
        return values

    def meanings(self, text: str, depth: int = 0) -> set[str]:
        """What a text with variables in it may be; what is not known stays as it is written."""
        if "$" not in text and "%" not in text:
            return {text}
        parts: list[list[str]] = []
        end = 0
        for use in _USE.finditer(text):
            parts.append([text[end : use.start()]])
            parts.append(self._of(use, depth))
            end = use.end()
        parts.append([text[end:]])
        return {"".join(chosen) for chosen in islice(product(*parts), _MOST)}

    def _of(self, use: re.Match[str], depth: int) -> list[str]:
        name = use[1] or use[2] or use[4] or use[5] or use[6]
        values = self._values.get(name, [])
        if values and depth < _DEEPEST:
            return sorted({meaning for value in values for meaning in self.meanings(value, depth + 1)})
        return [use[3]] if use[3] else [use.group()]
