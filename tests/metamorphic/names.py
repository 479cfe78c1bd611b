"""Which names a piece of code binds and reads, and which are bound when a statement runs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from .program import DEFINITIONS, FUNCTIONS, IMPORTS, Place, Scope

FRAME_READERS = {"super", "locals", "vars", "dir", "globals", "eval", "exec", "save_hyperparameters", "__class__"}
BUILTINS = set(dir(builtins))
_INNER = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run in the scope of these, inner functions and classes only as far as their definition does."""
    for node in nodes:
        yield node
        if isinstance(node, _INNER):
            inner = [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ())]
            arguments = getattr(node, "args", None)
            if isinstance(arguments, ast.arguments):
                inner += [*arguments.defaults, *(each for each in arguments.kw_defaults if each)]
            yield from own_nodes(inner)
        else:
            yield from own_nodes(ast.iter_child_nodes(node))


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that code binds in its own scope."""
    found: set[str] = set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, DEFINITIONS):
            found.add(node.name)
        elif isinstance(node, IMPORTS):
            found.update(imported(alias) for alias in node.names)
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
        ):
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found - comprehension_names(nodes)


def comprehension_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The loop variables of comprehensions, which are nobody else's (as long as no name is used both ways)."""
    return {
        name.id
        for node in own_nodes(nodes)
        if isinstance(node, _COMPREHENSIONS)
        for part in node.generators
        for name in ast.walk(part.target)
        if isinstance(name, ast.Name)
    }


def imported(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that code reads, inner functions included, in any scope."""
    return {
        node.id
        for each in nodes
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    } | {
        node.target.id
        for each in nodes
        for node in ast.walk(each)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }


def parameters(scope: Scope) -> list[str]:
    if not isinstance(scope, FUNCTIONS):
        return []
    arguments = scope.args
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [each.arg for each in every if each]


def locals_of(scope: Scope) -> set[str]:
    """What is local to a scope; of a module all but what never changes: imports, functions, classes."""
    found = bound(scope.body) | set(parameters(scope))
    if isinstance(scope, ast.Module):
        fixed = {name for each in scope.body if isinstance(each, (*IMPORTS, *DEFINITIONS)) for name in bound([each])}
        found -= fixed
    return found


def imports_of(tree: ast.AST) -> set[str]:
    """All names that imports bind anywhere in a file."""
    return {imported(alias) for node in ast.walk(tree) if isinstance(node, IMPORTS) for alias in node.names}


def surely_bound(place: Place) -> set[str]:
    """The names of its scope that are bound whenever the statement is reached."""
    found = set(parameters(place.scope))
    for step, (block, statement) in enumerate(place.path):
        if step:
            outer = place.path[step - 1][1]
            if isinstance(outer, (ast.For, ast.AsyncFor)) and block is outer.body:
                found |= bound([outer.target])
            elif isinstance(outer, (ast.With, ast.AsyncWith)):
                found |= _opened(outer)
        for each in block:
            if each is statement:
                break
            found |= ends_bound(each)
    return found


def _opened(statement: ast.With | ast.AsyncWith) -> set[str]:
    return {name for item in statement.items if item.optional_vars for name in bound([item.optional_vars])}


def ends_bound(statement: ast.stmt) -> set[str]:
    """The names that are bound whenever the statement has run to its end."""
    if isinstance(statement, ast.If):
        sides = [set().union(*map(ends_bound, block), set()) for block in (statement.body, statement.orelse)]
        return bound([statement.test]) | (sides[0] & sides[1])
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return _opened(statement) | set().union(*map(ends_bound, statement.body))
    if isinstance(statement, ast.Try):
        return set().union(*map(ends_bound, statement.finalbody), set())
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.Match)):
        return set()
    if isinstance(statement, ast.Delete):
        return set()
    return bound([statement])


def contains(nodes: Iterable[ast.AST], kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(node, kinds) for node in own_nodes(nodes))


def reads_its_frame(nodes: Iterable[ast.AST]) -> bool:
    """Whether code asks for the function it runs in, and so may not be moved to another."""
    for each in nodes:
        for node in ast.walk(each):
            if isinstance(node, ast.Name) and node.id in FRAME_READERS:
                return True
            if isinstance(node, ast.Attribute) and (node.attr in FRAME_READERS or _mangled(node.attr)):
                return True
    return False


def _mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def rebound_elsewhere(tree: ast.AST) -> set[str]:
    """The names that `global` and `nonlocal` let other functions bind."""
    return {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}


def is_dotted(node: ast.AST) -> bool:
    """A name or attributes of one: reading it does nothing, and a call beside it does not change it."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def root_name(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_still(node: ast.AST) -> bool:
    """An expression that may be evaluated earlier or later without a difference."""
    return is_dotted(node) or isinstance(node, (ast.Constant, ast.Lambda))
