from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check

_CD = re.compile(r"\s*!\s*cd\s+(?P<place>[^\s&;|#][^&;|#\r\n]*?)\s*(?:#[^\r\n]*)?")


class ShellCdInNotebook(Check):
    def visit_Module(self, _: cst.Module) -> None:
        source = self.facts.source
        for (start, _end), hidden in zip(source.masked, source.hidden, strict=False):
            for found in re.finditer(r"[^\r\n]+", hidden):
                met = _CD.fullmatch(found[0])
                if met is None or hidden.lstrip().startswith("%%"):
                    continue
                begin = start + found.start() + len(found[0]) - len(found[0].lstrip())
                self.report_span(
                    begin,
                    start + found.end(),
                    "`!cd` changes the directory of a shell that ends with the line, not that of the notebook",
                )
