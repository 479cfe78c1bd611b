"""The same names imported in another way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names import BUILTINS, bound, imported, parameters
from ..program import FUNCTIONS, IMPORTS, Program, behind_future, derive, is_docstring, names_in, origin, scopes
from ..quote import expression, statements
from . import rewrite

MODULES = {
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.utils", "torch.nn.parallel", "torch.optim",
    "torch.optim.lr_scheduler", "torch.utils", "torch.utils.data", "torch.utils.data.distributed",
    "torch.utils.checkpoint", "torch.distributed", "torch.multiprocessing", "torch.amp", "torch.cuda", "torch.cuda.amp",
    "torch.backends", "torch.backends.cudnn", "torch.autograd", "torchvision", "torchvision.transforms",
    "torchvision.models", "lightning", "lightning.pytorch", "lightning.fabric", "lightning.pytorch.callbacks",
    "lightning.pytorch.loggers", "lightning.pytorch.utilities", "lightning.pytorch.strategies", "pytorch_lightning",
    "pytorch_lightning.callbacks", "pytorch_lightning.loggers", "pytorch_lightning.utilities", "os", "os.path",
    "torchmetrics", "torch.distributed.fsdp", "torch.profiler", "torch.random", "torch.special", "math", "collections",
}  # fmt: skip


def _once(program: Program) -> Iterator[tuple[ast.stmt, ast.alias]]:
    """The imports of the module's own level whose name nothing else binds."""
    others: set[str] = set()
    for scope in scopes(program.tree):
        others |= set(parameters(scope))
        body = (
            scope.body if not isinstance(scope, ast.Module) else [e for e in scope.body if not isinstance(e, IMPORTS)]
        )
        others |= bound(body)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Lambda):
            others |= {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            others |= set(node.names)
    seen: list[str] = [
        imported(alias) for each in program.tree.body if isinstance(each, IMPORTS) for alias in each.names
    ]
    for each in program.tree.body:
        if isinstance(each, IMPORTS) and getattr(each, "module", "") != "__future__":
            for alias in each.names:
                name = imported(alias)
                if name != "*" and name not in others and seen.count(name) == 1:
                    yield each, alias


class _Replace(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self.values.get(node.id)
        return node if value is None else expression("VALUE", VALUE=value)


@rewrite("import-aliases", "import torch as lib1", local=False)
def import_aliases(program: Program) -> None:
    if not program.alone or "__all__" in names_in(program.tree):
        return
    values: dict[str, ast.expr] = {}
    for statement, alias in list(_once(program)):
        if isinstance(statement, ast.Import) and "." in alias.name and not alias.asname:
            continue
        new = f"lib{len(values) + 1}"
        values[imported(alias)] = ast.Name(new, ast.Load())
        alias.asname = new
    _Replace(values).visit(program.tree)


@rewrite("module-imports", "import torch.nn; torch.nn.Linear  # was from torch import nn", local=False)
def module_imports(program: Program) -> None:
    if not program.alone or "__all__" in names_in(program.tree):
        return
    values: dict[str, ast.expr] = {}
    wanted: dict[str, None] = {}
    gone: list[tuple[ast.stmt, ast.alias]] = []
    roots = {
        imported(alias): alias for each in ast.walk(program.tree) if isinstance(each, IMPORTS) for alias in each.names
    }
    for statement, alias in list(_once(program)):
        if not isinstance(statement, ast.ImportFrom) or statement.level or not statement.module:
            continue
        full = f"{statement.module}.{alias.name}"
        root = full.partition(".")[0]
        clash = roots.get(root)
        taken = root in _bound_besides_imports(program)
        if (
            taken
            or (clash is not None and clash.name.partition(".")[0] != root)
            or (clash is not None and clash.asname)
        ):
            continue
        values[imported(alias)] = expression(full)
        wanted[full if full in MODULES else statement.module] = None
        gone.append((statement, alias))
    if not gone:
        return
    for statement, alias in gone:
        statement.names.remove(alias)  # type: ignore[attr-defined]
    program.tree.body = [each for each in program.tree.body if not isinstance(each, IMPORTS) or each.names]
    _Replace(values).visit(program.tree)
    made = [each for name in wanted for each in statements(f"import {name}")]
    for each in made:
        derive(each, origin(gone[0][0]))
    at = behind_future(program.tree)
    program.tree.body[at:at] = made


def _bound_besides_imports(program: Program) -> set[str]:
    found: set[str] = set()
    for scope in scopes(program.tree):
        found |= set(parameters(scope)) | bound(each for each in scope.body if not isinstance(each, IMPORTS))
    return found


class _Dotted(ast.NodeTransformer):
    """`nn.Linear` becomes `Linear`, imported from where it is, where the way there is modules only."""

    def __init__(self, modules: dict[str, str], taken: set[str]) -> None:
        self.modules, self.taken = modules, taken
        self.wanted: dict[str, str] = {}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        path = self._path(node.value)
        if path in MODULES and isinstance(node.ctx, ast.Load) and f"{path}.{node.attr}" not in MODULES:
            if path.startswith("torch.backends") or self.wanted.get(node.attr, path) != path:
                return node
            if node.attr in self.taken and node.attr not in self.wanted:
                return node
            self.wanted[node.attr] = str(path)
            return ast.Name(node.attr, ast.Load())
        return self.generic_visit(node)

    def _path(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            before = self._path(node.value)
            return before and f"{before}.{node.attr}"
        return None


@rewrite("from-imports", "from torch.nn import Linear; Linear(8, 1)", local=False)
def from_imports(program: Program) -> None:
    modules: dict[str, str] = {}
    for statement, alias in list(_once(program)):
        if isinstance(statement, ast.Import):
            modules[imported(alias)] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            modules[imported(alias)] = f"{statement.module}.{alias.name}"
    bare = {node.id for node in ast.walk(program.tree) if isinstance(node, ast.Name)}
    defined = {node.name for node in ast.walk(program.tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef))}
    arguments = {node.arg for node in ast.walk(program.tree) if isinstance(node, ast.arg)}
    taken = bare | defined | arguments | set(modules) | BUILTINS
    change = _Dotted(modules, taken)
    change.visit(program.tree)
    made = [each for name, module in change.wanted.items() for each in statements(f"from {module} import {name}")]
    for each in made:
        derive(each, -1)
    at = behind_future(program.tree)
    while at < len(program.tree.body) and isinstance(program.tree.body[at], IMPORTS):
        at += 1
    program.tree.body[at:at] = made


@rewrite("local-imports", "def f():\n    import torch", local=False)
def local_imports(program: Program) -> None:
    """Imports that only functions use move into these."""
    tops = [each for each in program.tree.body if not isinstance(each, IMPORTS)]
    at_once = {name for each in tops for name in _read_at_once(each)}
    functions: list[ast.FunctionDef] = []
    for each in tops:
        holders = (
            [each]
            if isinstance(each, FUNCTIONS)
            else [one for one in getattr(each, "body", ()) if isinstance(one, FUNCTIONS)]
        )
        functions += [one for one in holders if isinstance(one, ast.FunctionDef)]
    if not program.alone:
        return
    for statement, alias in list(_once(program)):
        name = imported(alias)
        users = [each for each in functions if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(each))]
        if name in at_once or not users or (isinstance(statement, ast.ImportFrom) and statement.level):
            continue
        statement.names.remove(alias)  # type: ignore[attr-defined]
        single = (
            ast.Import([alias]) if isinstance(statement, ast.Import) else ast.ImportFrom(statement.module, [alias], 0)
        )  # type: ignore[attr-defined]
        for user in users:
            made = statements(ast.unparse(single))
            derive(made[0], origin(statement))
            at = int(is_docstring(user.body[0]))
            while at < len(user.body) and isinstance(user.body[at], (ast.Global, ast.Nonlocal)):
                at += 1
            user.body[at:at] = made
    program.tree.body = [each for each in program.tree.body if not isinstance(each, IMPORTS) or each.names]


def _read_at_once(statement: ast.AST) -> set[str]:
    """The names that a statement of the module reads when it runs: of functions, decorators, defaults, annotations."""
    if isinstance(statement, FUNCTIONS):
        heads: list[ast.AST] = [
            *statement.decorator_list,
            statement.args,
            *([statement.returns] if statement.returns else []),
        ]
        return {node.id for head in heads for node in ast.walk(head) if isinstance(node, ast.Name)}
    if isinstance(statement, ast.Name):
        return {statement.id}
    return {name for child in ast.iter_child_nodes(statement) for name in _read_at_once(child)}
