from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check

# a command that is all of its line and changes nothing but the shell it runs in
_LOST = re.compile(
    r"\s*!\s*(?P<command>cd|export|source|unset|alias|pushd|conda\s+activate)\s+[^\s&;|#\\-][^&;|#\r\n]*?\s*(?:#[^\r\n]*)?"
)
_DIRECTORY = "`!cd` changes the directory of a shell that ends with the line, not that of the notebook"


class ShellStateLostInNotebook(Check):
    def visit_Module(self, _: cst.Module) -> None:
        source = self.facts.source
        for (start, _end), hidden in zip(source.masked, source.hidden, strict=False):
            if hidden.lstrip().startswith("%%"):
                continue
            for found in re.finditer(r"[^\r\n]+", hidden):
                met = _LOST.fullmatch(found[0])
                if met is None:
                    continue
                begin = start + found.start() + len(found[0]) - len(found[0].lstrip())
                self.report_span(begin, start + found.end(), self._message(" ".join(met["command"].split())))

    def _message(self, command: str) -> str:
        if command == "cd":
            return _DIRECTORY
        instead = "; `%env` does" if command == "export" else ""
        return f"`!{command}` changes a shell that ends with the line, not the notebook and later `!` lines{instead}"
