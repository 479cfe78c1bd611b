"""Let rank zero alone do what every rank does."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from lightlint.facts.file import FileFacts
from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.ranks.writes import Write
from lightlint.fixes.code import Code
from lightlint.fixes.draft import Draft
from lightlint.fixes.drafts.statements import wrap_statements

# what all ranks have to ask for together, or get only where they all write
_REDUCING = {"callback_metrics", "logged_metrics", "progress_bar_metrics", "log_dir", "compute", "all_gather"}
_PURE = {"write", "writelines", "writerow", "writerows", "join", "format", "item", "cpu", "detach", "tolist", "numpy"}
_PURE |= {"isoformat", "items", "keys", "values", "strip", "mean", "sum"}
_PURE_CALLS = {"json.dump", "json.dumps", "yaml.dump", "pickle.dump", "csv.writer", "csv.DictWriter", "os.path.join"}
_PURE_CALLS |= {"pathlib.Path", "datetime.datetime.now", "time.time"}
_PURE_BUILTINS = {"str", "int", "float", "len", "round", "repr", "sorted", "list", "dict", "tuple", "print", "range"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A write under a test for rank zero, and whether no other rank can miss it."""

    draft: Draft | None
    is_safe: bool


def on_rank_zero(facts: FileFacts, call: cst.Call, write: Write) -> Guarded | None:
    """Put the statement of a writing call under a test for rank zero.

    Returns:
        None where the statement does more than the write, or the place has no way to ask for the rank.
    """
    code = Code(facts.source, facts)
    statement = _whole_statement(facts, call)
    test = _zero_test(facts, call)
    if (
        statement is None
        or test is None
        or any(name.value in _REDUCING for name in facts.tree.within(statement, cst.Name))
    ):
        return None
    in_hook = "get_rank" not in test
    is_safe = in_hook and _is_pure(facts, statement, call) and not _is_needed(facts, code, statement, write)
    return Guarded(wrap_statements(code, [statement], f"if {test}:"), is_safe)


def _whole_statement(facts: FileFacts, call: cst.Call) -> cst.SimpleStatementLine | cst.With | None:
    """The statement that does nothing but the write: the call alone, or the `with` that opens the file."""
    parent = facts.tree.parent(call)
    above = facts.tree.parent(parent) if parent is not None else None
    if isinstance(parent, cst.WithItem) and isinstance(above, cst.With) and len(above.items) == 1:
        return above
    alone = isinstance(parent, cst.Expr) and isinstance(above, cst.SimpleStatementLine) and len(above.body) == 1
    return above if alone and isinstance(above, cst.SimpleStatementLine) else None


def _zero_test(facts: FileFacts, call: cst.Call) -> str | None:
    """What is true on rank zero only, as code at this place can ask for it."""
    function = facts.tree.function(call)
    above = facts.tree.class_of(function) if function is not None else None
    if function is not None and above is not None:
        hook = facts.hooks.of(function)
        parameters = [each.name.value for each in function.params.params]
        owner = facts.hooks.owner(above)
        if owner is Owner.CALLBACK and hook is not None and len(parameters) > 1:
            return f"{parameters[1]}.is_global_zero"
        if owner in {Owner.MODULE, Owner.DATA_MODULE} and parameters:
            return f"{parameters[0]}.trainer.is_global_zero"
        if owner is not None:
            return None
    for binding in (each for found in facts.bindings.by_scope[facts.tree.module].values() for each in found):
        if binding.dotted == "torch.distributed":
            return f"{binding.name}.get_rank() == 0"
    return None


def _is_pure(facts: FileFacts, statement: cst.CSTNode, write: cst.Call) -> bool:
    """Whether a statement does nothing but write: no name bound for later, no call that others may wait for."""
    binds = [*facts.tree.within(statement, cst.Assign, cst.AugAssign), *facts.tree.within(statement, cst.NamedExpr)]
    if binds:
        return False
    return all(each is write or _is_pure_call(facts, each) for each in facts.tree.within(statement, cst.Call))


def _is_pure_call(facts: FileFacts, call: cst.Call) -> bool:
    name = facts.names.call(call) or ""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _PURE:
        return True
    return name in _PURE_CALLS or name.removeprefix("builtins.") in _PURE_BUILTINS


def _is_needed(facts: FileFacts, code: Code, statement: cst.CSTNode, write: Write) -> bool:
    """Whether other ranks may miss the write: the file is named again behind it, or holds what each rank has of a batch."""
    function = facts.tree.function(statement)
    if function is None or function.name.value == "setup" or facts.processes.follows_data(statement):
        return True
    spelled = code.text_of(write.path)
    behind = [
        each
        for each in facts.tree.within(function, type(write.path))
        if facts.tree.order(each) > facts.tree.order(statement) and not facts.tree.contains(statement, each)
    ]
    return any(code.text_of(each) == spelled for each in behind)
