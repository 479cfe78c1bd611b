"""Taking an activation off the logits that a call is given."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft
from lightlint.fixes.drafts.expressions import replace


def bare_logits(code: Code, names: Names, loss: cst.CSTNode, applied: cst.CSTNode | None) -> Draft | None:
    """The logits in the place of an activation, `torch.sigmoid(x)` or `x.sigmoid()`, that stands in the call of a loss itself."""
    input = names.argument(loss, "input", 0) if isinstance(loss, cst.Call) else None
    if input is None or input.star or applied is not input.value or not isinstance(applied, cst.Call):
        return None
    if (names.of(applied.func) or "").startswith("torch."):
        logits = names.argument(applied, "input", 0)
        return replace(code, applied, code.text_of(logits.value)) if logits and not logits.star else None
    if isinstance(applied.func, cst.Attribute) and all(
        isinstance(names.constant(arg.value), int) for arg in applied.args
    ):
        return replace(code, applied, code.text_of(applied.func.value))
    return None
