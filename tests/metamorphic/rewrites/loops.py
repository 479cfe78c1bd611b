"""The same turns with the same values, driven another way."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..names import bound, contains, is_dotted, read
from ..program import Place, Program, blocks, change_statements
from ..quote import expression, statements
from ..sites import suspends
from . import rewrite


def _continues(block: Sequence[ast.stmt]) -> bool:
    """Whether a `continue` in the block is for the loop that the block belongs to."""
    for each in block:
        if isinstance(each, ast.Continue):
            return True
        if not isinstance(each, (ast.For, ast.While)) and any(_continues(inner) for inner in blocks(each)):
            return True
    return False


def _used_besides(place: Place, names: set[str]) -> bool:
    """Whether code outside of the loop uses names of the loop."""
    inside = {id(node) for node in ast.walk(place.statement)}
    return any(
        isinstance(node, ast.Name) and node.id in names and id(node) not in inside for node in ast.walk(place.scope)
    )


def _change_loops(program: Program, template: str, stem: str) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        loop = place.statement
        if not isinstance(loop, ast.For) or loop.orelse or suspends(loop.iter):
            return None
        name = f"{program.fresh(stem)}_{len(place.path)}"
        made = statements(template, ITEMS=name, VALUES=loop.iter, ITEM=program.fresh("item"), BODY=loop.body)
        for each in made:
            for node in ast.walk(each):
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TARGET":
                    node.targets = [loop.target]
        return made

    change_statements(program.wanting(ast.For), change)


@rewrite("while-next", "it = iter(xs)\nwhile True:\n    try: x = next(it)\n    except StopIteration: break")
def while_next(program: Program) -> None:
    template = """
    ITEMS = iter(VALUES)
    while True:
        try:
            TARGET = next(ITEMS)
        except StopIteration:
            break
        BODY
    """
    _change_loops(program, template, "turns")


@rewrite("while-sentinel", "while (item := next(it, END)) is not END: x = item")
def while_sentinel(program: Program) -> None:
    program.ask("NO_MORE = object()")
    template = """
    ITEMS = iter(VALUES)
    while (ITEM := next(ITEMS, NO_MORE)) is not NO_MORE:
        TARGET = ITEM
        BODY
    """
    _change_loops(program, template, "turns")


@rewrite("while-counter", "i = 0\nwhile i < n: S; i += 1")
def while_counter(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        match place.statement:
            case (
                ast.For(
                    target=ast.Name(id=name), iter=ast.Call(func=ast.Name("range"), args=[stop], keywords=[])
                ) as loop
            ):
                pass
            case _:
                return None
        if loop.orelse or not (is_dotted(stop) or isinstance(stop, ast.Constant)) or _continues(loop.body):
            return None
        if bound(loop.body) & {name, *read([stop])} or _used_besides(place, {name}) or contains(loop.body, ast.Lambda):
            return None
        if not isinstance(stop, (ast.Name, ast.Constant)):
            return None
        return statements("I = 0\nwhile I < STOP:\n    BODY\n    I += 1", I=name, STOP=stop, BODY=loop.body)

    change_statements(program.wanting(ast.For), change)


@rewrite("enumerated", "for _, x in enumerate(xs): S")
def enumerated(program: Program) -> None:
    name = program.fresh("number")

    def change(place: Place) -> Sequence[ast.stmt] | None:
        loop = place.statement
        if not isinstance(loop, ast.For) or suspends(loop.iter):
            return None
        loop.target = ast.Tuple([ast.Name(name, ast.Store()), loop.target], ast.Store())
        loop.iter = expression("enumerate(VALUES)", VALUES=loop.iter)
        return [loop]

    change_statements(program.wanting(ast.For), change)


@rewrite("own-counter", "i = 0\nfor x in xs: S; i += 1  # was enumerate")
def own_counter(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        match place.statement:
            case (
                ast.For(
                    target=ast.Tuple(elts=[ast.Name(id=name), item]),
                    iter=ast.Call(func=ast.Name("enumerate"), args=[items], keywords=[]),
                    orelse=[],
                ) as loop
            ):
                pass
            case _:
                return None
        if _continues(loop.body) or name in bound(loop.body) or _used_besides(place, {name}):
            return None
        loop.target, loop.iter = item, items
        loop.body += statements("I += 1", I=name)
        return [*statements("I = 0", I=name), loop]

    change_statements(program.wanting(ast.For), change)


@rewrite("loop-over-generator", "for x in turns(xs): S  # def turns(xs): yield from xs")
def loop_over_generator(program: Program) -> None:
    program.ask("def turns(items):\n    yield from items")

    def change(place: Place) -> Sequence[ast.stmt] | None:
        loop = place.statement
        if not isinstance(loop, ast.For) or suspends(loop.iter):
            return None
        loop.iter = expression("turns(VALUES)", VALUES=loop.iter)
        return [loop]

    change_statements(program.wanting(ast.For), change)


@rewrite("loop-over-iterator", "items = iter(xs)\nfor x in items: S")
def loop_over_iterator(program: Program) -> None:
    def change(place: Place) -> Sequence[ast.stmt] | None:
        loop = place.statement
        if not isinstance(loop, ast.For) or suspends(loop.iter):
            return None
        name = f"{program.fresh('items')}_{len(place.path)}"
        before = statements("ITEMS = iter(VALUES)", ITEMS=name, VALUES=loop.iter)
        loop.iter = ast.Name(name, ast.Load())
        return [*before, loop]

    change_statements(program.wanting(ast.For), change)
