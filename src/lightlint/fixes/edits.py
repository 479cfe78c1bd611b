"""What checks build fixes with: helpers that draft text edits, so that no check ever writes an edit by hand.

Each takes a `Code`, answers with a `Draft` (join several with `+` or `join`) or with None where the change cannot be
made exactly, and leaves every character outside its edits as it is. `as_fix` turns a draft into a finding's fix.
"""

from lightlint.fixes.code import Code, Spans
from lightlint.fixes.draft import Draft, RawEdit, as_fix, join
from lightlint.fixes.drafts.arguments import insert_argument, remove_argument, replace_argument, replace_argument_name
from lightlint.fixes.drafts.expressions import rename, replace, wrap
from lightlint.fixes.drafts.imports import add_import
from lightlint.fixes.drafts.parameters import insert_default, insert_parameter, remove_parameter
from lightlint.fixes.drafts.statements import (
    decorate,
    drop_statement,
    insert_after,
    insert_before,
    replace_statement,
    wrap_statements,
)

__all__ = [
    "Code",
    "Draft",
    "RawEdit",
    "Spans",
    "add_import",
    "as_fix",
    "decorate",
    "drop_statement",
    "insert_after",
    "insert_argument",
    "insert_before",
    "insert_default",
    "insert_parameter",
    "join",
    "remove_argument",
    "remove_parameter",
    "rename",
    "replace",
    "replace_argument",
    "replace_argument_name",
    "replace_statement",
    "wrap",
    "wrap_statements",
]
