"""Annotations that are true are added, those that say nothing new are taken away."""

from __future__ import annotations

import ast

from ..names import bound, is_dotted, parameters, rebound_elsewhere
from ..program import FUNCTIONS, IMPORTS, Program, derive, names_in, origin, scopes
from . import rewrite

_READ_AT_RUN_TIME = {
    "dataclass",
    "LightningCLI",
    "NamedTuple",
    "TypedDict",
    "BaseModel",
    "attrs",
    "define",
    "jsonargparse",
    "script",
}
_PLAIN = {"int", "float", "str", "bool", "None"}


@rewrite("annotated", "x: nn.Linear = nn.Linear(8, 1)", local=False)
def annotated(program: Program) -> None:
    """Variables made by a class that is imported or the file's own get it as annotation; functions say what is plain."""
    if names_in(program.tree) & _READ_AT_RUN_TIME:
        return
    classes = {each.name for each in program.tree.body if isinstance(each, ast.ClassDef)}
    classes |= {n for each in program.tree.body if isinstance(each, IMPORTS) for n in bound([each])}
    several = _bound_more_than_once(program.tree)
    for scope in list(scopes(program.tree)):
        if isinstance(scope, FUNCTIONS):
            _say_what_is_plain(scope)
            taken = rebound_elsewhere(program.tree) | set(parameters(scope)) | several
            scope.body = [_Variables(scope, classes, taken).visit(each) for each in scope.body]


def _bound_more_than_once(tree: ast.Module) -> set[str]:
    """Names and attributes that more than one place of the file binds: one annotation may not hold for all."""
    stored = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load)
    ]
    return {each for each in stored if stored.count(each) > 1}


class _Variables(ast.NodeTransformer):
    def __init__(self, scope: ast.AST, classes: set[str], taken: set[str]) -> None:
        self.scope, self.classes, self.taken = scope, classes, taken

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=ast.Call(func=func)):
                pass
            case _:
                return node
        last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        root = func
        while isinstance(root, ast.Attribute):
            root = root.value
        known = isinstance(root, ast.Name) and root.id in self.classes and is_dotted(func)
        name = ast.unparse(target)
        if not known or not last[:1].isupper() or last.isupper() or name in self.taken:
            return node
        made = ast.AnnAssign(target, func, node.value, int(isinstance(target, ast.Name)))
        derive(made, origin(node))
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if node is not self.scope else self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def _say_what_is_plain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    places = [*function.args.posonlyargs, *function.args.args]
    for argument, default in zip(reversed(places), reversed(function.args.defaults), strict=False):
        if (
            argument.annotation is None
            and isinstance(default, ast.Constant)
            and type(default.value) in (int, str, bool)
        ):
            argument.annotation = ast.Name(type(default.value).__name__, ast.Load())
    if function.name == "__init__" and function.returns is None:
        function.returns = ast.Constant(None)


@rewrite("not-annotated", "x = nn.Linear(8, 1)  # was x: nn.Linear = ...", local=False)
def not_annotated(program: Program) -> None:
    """Annotations of variables with a value, of what functions return and of plain parameters go."""
    if names_in(program.tree) & _READ_AT_RUN_TIME:
        return
    for scope in list(scopes(program.tree)):
        if isinstance(scope, ast.ClassDef):
            continue
        if isinstance(scope, FUNCTIONS):
            scope.returns = None
            for each in [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]:
                if each.annotation is not None and ast.unparse(each.annotation) in _PLAIN:
                    each.annotation = None
        _Bare().visit(scope)


class _Bare(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return node
        made = ast.Assign([node.target], node.value, lineno=0)
        derive(made, origin(node))
        return made

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [each if isinstance(each, ast.AnnAssign) else self.visit(each) for each in node.body]
        return node
