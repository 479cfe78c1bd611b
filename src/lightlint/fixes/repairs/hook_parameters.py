"""Fit the parameters of a hook to what Lightning passes."""

from __future__ import annotations

import libcst as cst

from lightlint.facts.file import FileFacts
from lightlint.facts.lightning.hook_calls import Passed
from lightlint.facts.lightning.overrides import Taken
from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft, join
from lightlint.fixes.drafts.parameters import remove_parameter


def without_missing(
    facts: FileFacts, function: cst.FunctionDef, takes: Taken, call: Passed, missing: list[str]
) -> Draft | None:
    """Drop the parameters that a hook requires and Lightning does not pass; nothing to do where there are none.

    Returns:
        None where the body uses one, or another parameter would get what it is not named for.
    """
    if not missing:
        return Draft()
    if call.by_name or takes.keyword_only or not call.after(takes, missing):
        return None
    used = {each.value for each in facts.tree.within(function.body, cst.Name)}
    given = len(call.possible)
    dropped = [each for each in takes.positional if each.name.value in missing]
    if used.intersection(missing) or (not call.sure and any(each in dropped for each in takes.positional[:given])):
        return None
    code = Code(facts.source, facts)
    return join(*(remove_parameter(code, function, each) for each in dropped))
