"""Make an attribute of a module a buffer."""

from __future__ import annotations

import libcst as cst

from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft
from lightlint.fixes.drafts.statements import replace_statement


def as_buffer(code: Code, assign: cst.Assign, name: str) -> Draft:
    """Register what is assigned to `self.<name>` as a buffer that state dicts leave out, so that old ones still load."""
    value = code.text_of(assign.value)
    return replace_statement(code, assign, f'self.register_buffer("{name}", {value}, persistent=False)')
