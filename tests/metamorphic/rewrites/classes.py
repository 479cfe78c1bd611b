"""Classes and functions stand elsewhere or are put together otherwise."""

from __future__ import annotations

import ast

from ..names import bound, imports_of, is_dotted, read, reads_its_frame
from ..program import (
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    Program,
    behind_imports,
    derive,
    names_in,
    origin,
)
from ..quote import statements, twin
from ..sites import suspends
from . import rewrite

_SPECIAL_BASES = {"NamedTuple", "TypedDict", "Enum", "IntEnum", "Protocol", "Generic"}


def _classes(program: Program) -> list[ast.ClassDef]:
    return [
        each
        for each in program.tree.body
        if isinstance(each, ast.ClassDef)
        and not {ast.unparse(b).rpartition(".")[2] for b in each.bases} & _SPECIAL_BASES
    ]


@rewrite("base-between", "class Base(nn.Module): pass\nclass Net(Base): ...", local=False)
def base_between(program: Program) -> None:
    for each in _classes(program):
        if len(each.bases) != 1 or not is_dotted(each.bases[0]) or each.keywords:
            continue
        name = program.fresh(f"{each.name}Base")
        made = statements("class NAME(BASE):\n    pass", NAME=name, BASE=each.bases[0])
        derive(made[0], -1)
        each.bases = [ast.Name(name, ast.Load())]
        program.tree.body.insert(program.tree.body.index(each), made[0])


@rewrite("mixin", "class NetSteps: def step(self): ...\nclass Net(NetSteps, nn.Module): ...", local=False)
def mixin(program: Program) -> None:
    """The second half of a class's methods moves to a class before its bases."""
    for each in _classes(program):
        if each.decorator_list or not all(is_dotted(base) for base in each.bases) or not each.bases or each.keywords:
            continue
        methods = [one for one in each.body if isinstance(one, FUNCTIONS)]
        names = [one.name for one in methods]
        inner = bound(each.body)
        movable = [
            one
            for one in methods[(len(methods) + 1) // 2 :]
            if names.count(one.name) == 1
            and not any(
                isinstance(d, ast.Attribute) and d.attr in ("setter", "getter", "deleter") for d in one.decorator_list
            )
            and not read([*one.decorator_list, one.args]) & inner
            and not _private(one)
        ]
        later = read(one for one in each.body if not isinstance(one, FUNCTIONS))
        movable = [one for one in movable if one.name not in later and not (one.name.startswith("__"))]
        if not movable or len(movable) == len(each.body):
            continue
        name = program.fresh(f"{each.name}Steps")
        made = statements("class NAME:\n    BODY", NAME=name, BODY=movable)[0]
        derive(made, -1)
        each.body = [one for one in each.body if one not in movable]
        each.bases = [ast.Name(name, ast.Load()), *each.bases]
        program.tree.body.insert(program.tree.body.index(each), made)


def _private(function: ast.AST) -> bool:
    return any(
        isinstance(node, (ast.Attribute, ast.Name))
        and (name := node.attr if isinstance(node, ast.Attribute) else node.id).startswith("__")
        and not name.endswith("__")
        for node in ast.walk(function)
    )


def _move(program: Program, kinds: tuple[type[ast.stmt], ...], stem: str) -> None:
    """Definitions that need only imports, builtins and each other move to another file, if the rest uses one."""
    body = program.tree.body
    if not program.alone or any(isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in body):
        return
    if imports_of(program.tree) and any(alias == "*" for alias in imports_of(program.tree)):
        return
    imports = [each for each in body if isinstance(each, IMPORTS)]
    known = {name for each in imports for name in bound([each])}
    moved = {each.name: each for each in body if isinstance(each, kinds)}
    rebound = bound(each for each in body if not isinstance(each, (*DEFINITIONS, *IMPORTS)))
    module_names = bound(body)
    while True:
        gone = [
            name
            for name, each in moved.items()
            if (read([each]) & module_names) - known - set(moved) or name in rebound or _globals(each)
        ]
        if not gone:
            break
        for name in gone:
            del moved[name]
    rest = [each for each in body if each not in moved.values() and not isinstance(each, IMPORTS)]
    used = sorted(name for name in moved if name in read(rest))
    if not used:
        return
    file = next(f"{name}" for name in (stem, f"{stem}_2", f"{stem}_3") if name not in names_in(program.tree))
    needed = read(moved.values())
    carried = [twin(each) for each in imports if bound([each]) & needed]
    other = ast.Module([*carried, *moved.values()], [])
    program.added[f"{file}.py"] = other
    program.tree.body = [each for each in body if each not in moved.values()]
    made = statements(f"from {file} import {', '.join(used)}")
    derive(made[0], -1)
    at = behind_imports(program.tree)
    program.tree.body[at:at] = made


def _globals(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Global) or (isinstance(each, ast.Name) and each.id == "__file__")
        for each in ast.walk(node)
    )


@rewrite("classes-to-file", "from parts import Net", local=False)
def classes_to_file(program: Program) -> None:
    _move(program, (ast.ClassDef,), "parts")


@rewrite("functions-to-file", "from helpers import train", local=False)
def functions_to_file(program: Program) -> None:
    _move(program, (ast.FunctionDef,), "helpers")


@rewrite("bases-to-file", "from bases import NetBase\nclass Net(NetBase): ...", local=False)
def bases_to_file(program: Program) -> None:
    """A class between a class and its base, in another file."""
    if not program.alone:
        return
    imports = [each for each in program.tree.body if isinstance(each, IMPORTS)]
    known = {name for each in imports for name in bound([each])}
    made: list[ast.stmt] = []
    for each in _classes(program):
        if len(each.bases) != 1 or not is_dotted(each.bases[0]) or not read(each.bases) <= known or each.keywords:
            continue
        name = program.fresh(f"{each.name}Base")
        made += statements("class NAME(BASE):\n    pass", NAME=name, BASE=each.bases[0])
        each.bases = [ast.Name(name, ast.Load())]
    if not made:
        return
    needed = read(made)
    program.added["bases.py"] = ast.Module([*(twin(one) for one in imports if bound([one]) & needed), *made], [])
    program.ask("from bases import " + ", ".join(each.name for each in made if isinstance(each, ast.ClassDef)))


@rewrite("decorator-called", "def f(): ...\nf = torch.no_grad()(f)", local=False)
def decorator_called(program: Program) -> None:
    for holder in [program.tree, *_classes(program)]:
        result: list[ast.stmt] = []
        for each in holder.body:
            result.append(each)
            if not isinstance(each, ast.FunctionDef) or not each.decorator_list:
                continue
            words = {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in each.decorator_list}
            if words & {"property", "setter", "getter", "overload", "deleter"}:
                continue
            value: ast.expr = ast.Name(each.name, ast.Load())
            for decorator in reversed(each.decorator_list):
                value = ast.Call(decorator, [value], [])
            each.decorator_list = []
            made = statements("NAME = VALUE", NAME=each.name, VALUE=value)
            derive(made[0], origin(each))
            result += made
        holder.body[:] = result


def _decorate(program: Program, name: str) -> bool:
    done = False
    for holder in [program.tree, *_classes(program)]:
        for each in holder.body:
            if isinstance(each, ast.FunctionDef) and not reads_its_frame([each]) and not suspends(each):
                words = [ast.unparse(one) for one in each.decorator_list]
                at = next(
                    (
                        n
                        for n, w in enumerate(words)
                        if w in ("staticmethod", "classmethod", "property") or "setter" in w
                    ),
                    None,
                )
                each.decorator_list.insert(len(words) if at is None else at + 1, ast.Name(name, ast.Load()))
                done = True
    return done


@rewrite("plain-decorator", "@unchanged\ndef f(): ...  # def unchanged(function): return function", local=False)
def plain_decorator(program: Program) -> None:
    if _decorate(program, "unchanged"):
        program.ask("def unchanged(function):\n    return function")


@rewrite("wrapping-decorator", "@wrapped\ndef f(): ...  # calls it with *args, **kwargs", local=False)
def wrapping_decorator(program: Program) -> None:
    if _decorate(program, "wrapped"):
        program.ask("import functools")
        program.ask(
            "def wrapped(function):\n    @functools.wraps(function)\n    def call(*args, **kwargs):\n"
            "        return function(*args, **kwargs)\n    return call"
        )
