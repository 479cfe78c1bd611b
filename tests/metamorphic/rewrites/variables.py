"""Local variables under other names, in one object, or not at all."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import count

from ..names import bound, is_still, locals_of, own_nodes, parameters, read, reads_its_frame, rebound_elsewhere
from ..program import (
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    Program,
    Scope,
    behind_imports,
    blocks,
    derive,
    is_docstring,
    origin,
    scopes,
)
from ..quote import expression, statements, twin
from ..sites import arguments, root, root_call, suspends
from . import rewrite

_OTHER_BINDERS = (
    ast.For,
    ast.AsyncFor,
    ast.With,
    ast.AsyncWith,
    ast.NamedExpr,
    ast.AnnAssign,
    ast.comprehension,
    ast.Delete,
)


def _renamable(program: Program, scope: Scope) -> set[str]:
    """The variables of a scope that are bound as names only, and by nobody inside or outside of it."""
    if (
        isinstance(scope, ast.ClassDef)
        or reads_its_frame([scope])
        or (isinstance(scope, ast.Module) and not program.alone)
    ):
        return set()
    names = {
        node.id for node in own_nodes(scope.body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    inner = [node for node in ast.walk(scope) if isinstance(node, (*DEFINITIONS, ast.Lambda)) and node is not scope]
    taken = set(parameters(scope)) | rebound_elsewhere(program.tree)
    for each in inner:
        taken |= {node.arg for node in ast.walk(each) if isinstance(node, ast.arg)}
        taken |= bound(each.body) if isinstance(each, DEFINITIONS) else set()
        taken |= {each.name} if isinstance(each, DEFINITIONS) else set()
    for node in ast.walk(scope):
        if isinstance(node, IMPORTS):
            taken |= bound([node])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            taken.add(node.name)
        elif isinstance(node, ast.comprehension):
            taken |= bound([node.target])
    return {name for name in names - taken if not name.startswith("__")}


@rewrite("renamed-locals", "v1 = E; f(v1)", local=False)
def renamed_locals(program: Program) -> None:
    new = (name for name in map("v{}".format, count(1)) if name not in program.names)  # not torchvision's `v2`
    for scope in list(scopes(program.tree)):
        renames = {name: next(new) for name in sorted(_renamable(program, scope))}
        for node in ast.walk(scope):
            if isinstance(node, ast.Name) and node.id in renames:
                node.id = renames[node.id]


class _InOne(ast.NodeTransformer):
    """Names become parts of one object."""

    def __init__(self, names: set[str], holder: str, form: Callable[[str, str, ast.expr_context], ast.expr]) -> None:
        self.names, self.holder, self.form = names, holder, form

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.form(self.holder, node.id, node.ctx) if node.id in self.names else node


def _attribute(holder: str, name: str, ctx: ast.expr_context) -> ast.expr:
    return ast.Attribute(ast.Name(holder, ast.Load()), name, ctx)


def _item(holder: str, name: str, ctx: ast.expr_context) -> ast.expr:
    return ast.Subscript(ast.Name(holder, ast.Load()), ast.Constant(name), ctx)


def _plain(program: Program, scope: Scope) -> set[str]:
    """The renamable variables of a scope that only plain assignments bind."""
    names = _renamable(program, scope)
    for node in own_nodes(scope.body):
        if isinstance(node, _OTHER_BINDERS):
            heads = [getattr(node, "target", None), *(each.optional_vars for each in getattr(node, "items", ()))]
            names -= bound(each for each in heads if each is not None)
            names -= {each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)}
    return names


def _together(program: Program, start: str, form: Callable[[str, str, ast.expr_context], ast.expr]) -> bool:
    done = False
    for number, scope in enumerate(list(scopes(program.tree))):
        names = _plain(program, scope)
        if not names or isinstance(scope, ast.Module):
            continue
        holder = program.fresh(f"state_{number}" if number > 1 else "state")
        made = statements(start, HOLDER=holder)
        derive(made[0], -1)
        at = int(is_docstring(scope.body[0]))
        while at < len(scope.body) and isinstance(scope.body[at], (ast.Global, ast.Nonlocal)):
            at += 1
        scope.body = [_InOne(names, holder, form).visit(each) for each in scope.body]
        scope.body[at:at] = made
        done = True
    return done


@rewrite("locals-in-namespace", "state = SimpleNamespace(); state.x = E; f(state.x)", local=False)
def locals_in_namespace(program: Program) -> None:
    if _together(program, "HOLDER = SimpleNamespace()", _attribute):
        program.ask("from types import SimpleNamespace")


@rewrite("locals-in-dict", "state = {}; state['x'] = E; f(state['x'])", local=False)
def locals_in_dict(program: Program) -> None:
    _together(program, "HOLDER = {}", _item)


@rewrite("function-to-class", "class Runner:\n    def run(self, a): self.x = E", local=False)
def function_to_class(program: Program) -> None:
    functions = [each for each in program.tree.body if isinstance(each, ast.FunctionDef)]
    for number, function in enumerate(functions, 1):
        names = _plain(program, function) - {"run"}
        everything = function.args
        if (
            function.decorator_list
            or everything.vararg
            or everything.kwarg
            or everything.kwonlyargs
            or suspends(function)
        ):
            continue
        if not names or "self" in read([function]) or reads_its_frame([function]):
            continue
        body = [_InOne(names, "self", _attribute).visit(each) for each in function.body]
        arguments_ = twin(everything)
        arguments_.args.insert(0, ast.arg("self"))
        if arguments_.posonlyargs:
            continue
        made = statements(
            "class NAME:\n    def run(self):\n        BODY", NAME=program.fresh(f"Runner{number}"), BODY=body
        )[0]
        assert isinstance(made, ast.ClassDef)
        made.body[0].args = arguments_  # type: ignore[attr-defined]
        given = [ast.Name(each.arg, ast.Load()) for each in everything.args]
        function.body = [ast.Return(ast.Call(expression("NAME().run", NAME=made.name), given, []))]
        derive(made, origin(function))
        derive(function, origin(function))
        program.tree.body.insert(program.tree.body.index(function), made)


@rewrite("inlined-temporary", "x = E; f(x) -> f(E)", local=False)
def inlined_temporary(program: Program) -> None:
    """A variable that only the next statement uses, once, before all else, gives way to its value."""
    for scope in list(scopes(program.tree)):
        if isinstance(scope, ast.ClassDef) or reads_its_frame([scope]):
            continue
        if isinstance(scope, ast.Module) and not program.alone:
            continue
        names = _renamable(program, scope)
        for block in list(_all_blocks(scope.body)):
            _inline(block, scope, names)


def _all_blocks(block: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    yield block
    for each in block:
        for inner in blocks(each):
            yield from _all_blocks(inner)


def _inline(block: list[ast.stmt], scope: Scope, names: set[str]) -> None:
    number = 0
    while number + 1 < len(block):
        match block[number]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names and not suspends(value):
                uses = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == name]
                slot = _first_use(block[number + 1], name)
                if slot is not None and len(uses) == 2:
                    slot.put(value)
                    block[number + 1].origin = origin(block[number + 1])  # type: ignore[attr-defined]
                    del block[number]
                    continue
        number += 1


def _first_use(statement: ast.stmt, name: str):  # type: ignore[no-untyped-def]
    """Where a statement reads the name before it runs anything."""
    slot = root(statement)
    if slot is None or isinstance(statement, ast.AugAssign):
        return None
    if isinstance(slot.value, ast.Name):
        return slot if slot.value.id == name else None
    call = root_call(statement)
    if call is None:
        return None
    for each in arguments(call.value):
        if isinstance(each.value, ast.Name) and each.value.id == name:
            return each
        if not is_still(each.value):
            return None
    return None


@rewrite("joined-assignments", "x, y = E1, E2", local=False)
def joined_assignments(program: Program) -> None:
    for scope in list(scopes(program.tree)):
        if isinstance(scope, (ast.ClassDef, ast.Module)):
            continue
        own = locals_of(scope)
        inner = read(
            node for node in ast.walk(scope) if isinstance(node, (*FUNCTIONS, ast.Lambda)) and node is not scope
        )
        for block in list(_all_blocks(scope.body)):
            _join(block, own - inner)


def _join(block: list[ast.stmt], names: set[str]) -> None:
    number = 0
    while number + 1 < len(block):
        match block[number : number + 2]:
            case [
                ast.Assign(targets=[ast.Name(id=first) as one], value=left),
                ast.Assign(targets=[ast.Name(id=second) as two], value=right),
            ] if first in names and second in names and first not in read([right]) and first != second:
                together = ast.Assign(
                    [ast.Tuple([one, two], ast.Store())], ast.Tuple([left, right], ast.Load()), lineno=0
                )
                derive(together, origin(block[number]))
                together.also = origin(block[number + 1])  # type: ignore[attr-defined]
                block[number : number + 2] = [together]
        number += 1


@rewrite("split-tuple", "x = E1; y = E2  # was x, y = E1, E2", local=False)
def split_tuple(program: Program) -> None:
    """`x, y = a, b` becomes two assignments where the second value does not read the first name."""
    for scope in list(scopes(program.tree)):
        if isinstance(scope, ast.ClassDef):
            continue
        for block in list(_all_blocks(scope.body)):
            _split(block)


def _split(block: list[ast.stmt]) -> None:
    result: list[ast.stmt] = []
    for each in block:
        match each:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if (
                len(names) == len(values)
                and all(isinstance(name, ast.Name) for name in names)
                and not bound(names) & read(values)
                and not any(isinstance(value, ast.Starred) for value in values)
            ):
                made = [ast.Assign([name], value, lineno=0) for name, value in zip(names, values, strict=True)]
                for one in made:
                    derive(one, origin(each))
                result += made
            case _:
                result.append(each)
    block[:] = result


@rewrite("module-state", "STATE.x = E at the module's level; f(STATE.x)", local=False)
def module_state(program: Program) -> None:
    """Variables of the module become attributes of one object."""
    names = _plain(program, program.tree)
    if not names:
        return
    holder = program.fresh("STATE")
    program.tree.body = [_InOne(names, holder, _attribute).visit(each) for each in program.tree.body]
    program.ask("from types import SimpleNamespace")
    made = statements("HOLDER = SimpleNamespace()", HOLDER=holder)
    derive(made[0], -1)
    at = behind_imports(program.tree)
    program.tree.body[at:at] = made
