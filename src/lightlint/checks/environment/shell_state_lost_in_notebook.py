from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check

# a command that is all of its line and changes nothing but the shell it runs in
_STATE = r"(?P<command>cd|export|source|unset|alias|pushd|conda\s+activate)\s+(?P<what>[^\s&;|#\\-][^&;|#\r\n]*?)\s*(?:#[^\r\n]*)?"
_LOST = re.compile(rf"\s*!\s*{_STATE}")
_LAST = re.compile(rf"\s*{_STATE}")
_SHELL = re.compile(r"\s*%%(?:bash|sh|shell)\b[^\r\n]*")
_MOVED = re.compile(r"\s*(?:cd|pushd)\b")
_GOES = re.compile(r"^\s*%?(?:cd|pushd)\s", re.MULTILINE)  # what does change the folder of the notebook
_START = re.compile(r"cd\s+[\"']?/(?:content|kaggle/working)/?[\"']?")  # where notebooks of Colab and Kaggle begin
_DIRECTORY = "`!cd` changes the directory of a shell that ends with the line, not that of the notebook"


class ShellStateLostInNotebook(Check):
    def visit_Module(self, _: cst.Module) -> None:
        source = self.facts.source
        for (start, _end), hidden in zip(source.masked, source.hidden, strict=False):
            if _SHELL.match(hidden):
                self._judge_cell(start, hidden)
            if hidden.lstrip().startswith("%%"):
                continue
            for found in re.finditer(r"[^\r\n]+", hidden):
                met = _LOST.fullmatch(found[0])
                if met is None or (_MOVED.match(met["command"]) and self._is_named(met["what"], start + found.end())):
                    continue
                if _START.fullmatch(f"{met['command']} {met['what']}") and not self._has_gone(start):
                    continue
                begin = start + found.start() + len(found[0]) - len(found[0].lstrip())
                self.report_span(begin, start + found.end(), self._message(" ".join(met["command"].split())))

    def _has_gone(self, end: int) -> bool:
        """Whether a line before a place may have changed the folder of the notebook."""
        source = self.facts.source
        spans = zip(source.masked, source.hidden, strict=False)
        gone = any(start < end and _GOES.search(hidden) for (start, _), hidden in spans)
        return gone or "chdir(" in source.text[:end]

    def _is_named(self, folder: str, end: int) -> bool:
        """Whether a later line of the cell names the folder from where the notebook is, and so counts on no change."""
        source = self.facts.source
        cell = source.cell_at(end - 1)
        inner = folder.strip("'\"").removeprefix("./").rstrip("/")
        if cell is None or not inner or inner.startswith(("/", "~", ".", "$", "{")):
            return False
        named = re.compile(rf"(?<![\w./-])(?:\./)?{re.escape(inner)}(?![\w.-])")
        spans = zip(source.masked, source.hidden, strict=False)
        return any(end <= start < cell.end and named.search(hidden) for (start, _), hidden in spans)

    def _judge_cell(self, start: int, hidden: str) -> None:
        """What a cell of shell commands changes at its end, where no command is left that would see it."""
        rows = [
            row for row in re.finditer(r"[^\r\n]+", hidden) if row[0].strip() and not row[0].lstrip().startswith("#")
        ]
        while len(rows) > 1:
            row = rows.pop()
            met = _LAST.fullmatch(row[0])
            if met is None or rows[-1][0].endswith("\\"):
                return
            command = " ".join(met["command"].split())
            if command in {"cd", "pushd"} and any(_MOVED.match(each[0]) for each in rows):
                continue  # back from where the cell went before
            begin = start + row.start() + len(row[0]) - len(row[0].lstrip())
            self.report_span(
                begin,
                start + row.end(),
                f"`{command}` changes the shell of the cell, which ends here, not the notebook",
            )

    def _message(self, command: str) -> str:
        if command == "cd":
            return _DIRECTORY
        instead = "; `%env` does" if command == "export" else ""
        return f"`!{command}` changes a shell that ends with the line, not the notebook and later `!` lines{instead}"
