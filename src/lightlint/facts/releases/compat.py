"""What the target version means for names that came and went, and which code is there for some versions only."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Kind
from lightlint.facts.releases.failures import is_expected
from lightlint.facts.versions.version_tests import Leads, VersionTests
from lightlint.facts.versions.versions import Target, Version
from lightlint.finding import Tier

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 3
_Asks = Callable[["Linked", cst.CSTNode, int], bool]
# What is there on some machines only: `torch.cuda.is_available()`, `has_gpu`, `HAS_AMP`.
_OF_MACHINES = r"(?!is_available$|.*(?:cuda|gpu|mps|tpu|xla|npu|bf16|amp)(?:_is)?_avail|_?has_(?:cuda|gpu|mps|npu|native_amp|amp|apex))"
_ASKS_VERSION = re.compile(
    rf"^{_OF_MACHINES}(?:.*version|(?:.*_)?(?:major|minor)(?:$|_)|.*greater|.*less_than|.*_(?:ge|le|gt|lt)_|.*\d_\d|_?has_"
    r"|.*available|.*compat|.*legacy|_?is_(?:new|old|at_least|before|after|since|(?:py)?torch|lightning|pt|pl|v?\d))",
    re.IGNORECASE,  # not `is_sparse`
)
_LOOKS = re.compile("^hasattr$")  # whether anything has a name: also whether a Trainer has it
_SKIPS = {"pytest.mark.skipif", "unittest.skipIf"}
# What a name or an argument that is not there raises; and all of it at once.
_LACKS = {"AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError", "RuntimeError"}
_LACKS |= {"NotImplementedError", "Exception", "BaseException"}
# What no missing name raises.
_UNRELATED = {"KeyboardInterrupt", "SystemExit", "StopIteration", "OSError", "IOError", "FileNotFoundError", "EOFError"}


def _answers(_facts: Linked) -> dict[tuple[int, int, str | None], bool]:
    """The answers about a file's nodes, which the events of a whole path ask again and again: of `is_for_older` by None."""
    return {}


def removal_tier(target: Target, removed: Version) -> Tier | None:
    """How bad it is to use what is gone since `removed`: None where the target still has it, a warning where part of it does."""
    if target.version < removed:
        return None
    return Tier.ERROR if target.surely_at_least(removed) else Tier.WARNING


def is_versioned(facts: Linked, node: cst.CSTNode, depth: int = 0, raises: str = "") -> bool:
    """Whether code runs for some versions only: `is_for_older`, or its failure is expected, here or wherever it is used.

    `raises`: the builtin exception that it raises where it fails; a handler of another expects something else.
    """
    known = facts.fact(_answers)
    key = (id(node), depth, raises)
    if key not in known:
        known[key] = _is_versioned(facts, node, depth, raises)
    return known[key]


def _is_versioned(facts: Linked, node: cst.CSTNode, depth: int, raises: str) -> bool:
    above = list(facts.tree.ancestors(node))
    tries = [each for each in above if isinstance(each, cst.Try) and facts.tree.contains(each.body, node)]
    rescues = [
        handler for each in tries for handler in each.handlers if not _gives_up(each, handler, tells=bool(raises))
    ]
    if any(_may_catch(_raised(facts, handler), raises) for handler in rescues):
        return True
    handlers = [each for each in above if isinstance(each, cst.ExceptHandler)]
    if handlers or is_expected(facts, node):
        return True
    if VersionTests(facts, _LOOKS).under(node) is Leads.OLDER or is_for_older(facts, node):
        return True
    around = [each for each in above if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
    asks = partial(is_versioned, raises=raises)
    return depth < _DEPTH and any(_is_used_only(facts, each, depth, asks) for each in around)


def is_for_older(facts: Linked, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether code may be there for versions before the newest: a test keeps it, or what is around it, from those.

    The test may stand around the code or leave before it; around the class or function, which then is not even defined;
    or around everything that uses these. A handler of a missing name counts as well.
    """
    known = facts.fact(_answers)
    key = (id(node), depth, None)
    if key not in known:
        known[key] = _is_for_older(facts, node, depth)
    return known[key]


def _is_for_older(facts: Linked, node: cst.CSTNode, depth: int) -> bool:
    tree, strict = facts.tree, VersionTests(facts)
    tests = strict if depth else VersionTests(facts, _ASKS_VERSION)  # around another place a telling name is not enough
    if tests.under(node) is Leads.OLDER:
        return True
    above = list(tree.ancestors(node))
    if any(_raised(facts, each) & _LACKS for each in above if isinstance(each, cst.ExceptHandler)):
        return True
    around = [each for each in (node, *above) if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
    if any(strict.under(each) is Leads.OLDER or _is_skipped(facts, tests, each) for each in around):
        return True
    return depth < _DEPTH and any(_is_used_only(facts, each, depth, is_for_older) for each in around)


def _raised(facts: Linked, handler: cst.ExceptHandler) -> set[str]:
    """What a handler catches, by its last name; a bare one everything."""
    if handler.type is None:
        return {"BaseException"}
    kinds = [each.value for each in handler.type.elements] if isinstance(handler.type, cst.Tuple) else [handler.type]
    return {(facts.names.of(each) or "").rpartition(".")[2] for each in kinds}


def _may_catch(caught: set[str], raises: str) -> bool:
    """Whether a handler that catches such exceptions may expect a failure that raises one, "" for any of a missing name."""
    if not raises:
        return not caught <= _UNRELATED
    wanted = getattr(builtins, raises)
    kinds = (getattr(builtins, each, None) for each in caught)
    return any(not isinstance(each, type) or issubclass(wanted, each) for each in kinds)


def _gives_up(tried: cst.Try, handler: cst.ExceptHandler, *, tells: bool) -> bool:
    """Whether a handler rescues nothing: it lets an error on its way, whatever it prints or cleans up before, or ends the
    program, or (`tells`) only tells of it where much else has been tried."""
    lines = handler.body.body
    if not all(isinstance(each, cst.SimpleStatementLine) for each in lines):
        return False
    small = [each for line in lines if isinstance(line, cst.SimpleStatementLine) for each in line.body]
    if isinstance(small[-1], cst.Raise):
        return True
    calls = [each.value for each in small if isinstance(each, cst.Expr) and isinstance(each.value, cst.Call)]
    names = [_last_name(each.func) for each in calls]
    only = len(calls) == len(small) and _TELLS.issuperset(names) and len(tried.body.body) > 1
    last = small[-1].value if isinstance(small[-1], cst.Expr) else None
    return (tells and only) or (isinstance(last, cst.Call) and _last_name(last.func) in _ENDS)


def _last_name(func: cst.BaseExpression) -> str:
    name = func.attr if isinstance(func, cst.Attribute) else func
    return name.value if isinstance(name, cst.Name) else ""


_TELLS = {"print", "print_exc", "exception", "error", "critical", "warning", "info", "write"}
_ENDS = {"exit", "_exit", "quit"}


def _is_skipped(facts: Linked, tests: VersionTests, node: cst.FunctionDef | cst.ClassDef) -> bool:
    """Whether a decorator leaves a test out for newer versions."""
    marks = [each.decorator for each in node.decorators if facts.names.call(each.decorator) in _SKIPS]
    calls = [each for each in marks if isinstance(each, cst.Call) and each.args]
    return any(tests.leads(each.args[0].value, False) is Leads.OLDER for each in calls)


def _is_used_only(facts: Linked, node: cst.FunctionDef | cst.ClassDef, depth: int, so: _Asks) -> bool:
    """Whether a function or class that this file uses is used only in such places."""
    tree = facts.tree
    if isinstance(node, cst.FunctionDef) and tree.class_of(node) is not None:
        uses: list[cst.CSTNode] = list(facts.hooks.calls_of.get(node, ())) if node.name.value.startswith("_") else []
    else:
        named = [each for each in tree.all(cst.Name) if each.value == node.name.value and not facts.names.is_word(each)]
        uses = [each for each in named if not tree.contains(node, each) and _means(facts, each, node)]
    return bool(uses) and all(so(facts, each, depth + 1) for each in uses)


def _means(facts: Linked, name: cst.Name, node: cst.CSTNode) -> bool:
    found = facts.names.bindings.lookup(name)
    return any(each.site is node and each.kind in {Kind.FUNCTION, Kind.CLASS} for each in found)
