"""What an expression holds: the constructor calls its value comes from, followed through names, attributes and calls.

Roles (optimizer, loader, module, ...) come from constructors and annotations only; how a name is spelled proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from lightlint.facts.bindings import Binding, Kind
from lightlint.facts.classes import MODULE, NN_MODULE, OPTIMIZER, Classes
from lightlint.facts.hooks import Hooks
from lightlint.facts.names import UNKNOWN, Names
from lightlint.facts.tree import Tree

_DEPTH = 8
_SAME_OBJECT = {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_"}
_SCALERS = {"torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"}
_WRAPPERS = {"builtins.enumerate", "builtins.iter", "builtins.next", "builtins.list", "builtins.tuple", "tqdm.tqdm"}
_WRAPPERS |= {
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "itertools.islice",
    "rich.progress.track",
    "itertools.cycle",
    "tqdm",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: the canonical class (or function) name, and the call that made it where one is in sight."""

    name: str
    call: cst.Call | None = None


class Values:
    """Origins of the values of one file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks

    def origins(self, expression: cst.CSTNode | None) -> tuple[Origin, ...]:
        """Every constructor an expression's value can come from; empty if any of its sources is out of sight."""
        found = self._origins(expression, 0)
        return () if None in found else tuple(dict.fromkeys(origin for origin in found if origin is not None))

    def constructor(self, expression: cst.CSTNode | None) -> Origin | None:
        """The one origin of a value, None if there are several or it is unknown."""
        found = self.origins(expression)
        return found[0] if len({origin.name for origin in found}) == 1 else None

    def is_optimizer(self, expression: cst.CSTNode | None) -> bool:
        """Whether a value surely is a torch optimizer."""
        return self._all_are(expression, OPTIMIZER)

    def is_module(self, expression: cst.CSTNode | None) -> bool:
        """Whether a value surely is a torch module."""
        return self._all_are(expression, NN_MODULE)

    def is_loader(self, expression: cst.CSTNode | None) -> bool:
        """Whether a value surely is a torch DataLoader."""
        return self._all_are(expression, "torch.utils.data.DataLoader")

    def is_scaler(self, expression: cst.CSTNode | None) -> bool:
        """Whether a value surely is a torch gradient scaler."""
        found = self.origins(expression)
        return bool(found) and all(origin.name in _SCALERS for origin in found)

    def iterated(self, expression: cst.CSTNode) -> cst.CSTNode:
        """What a loop really iterates: the argument of `enumerate`, `tqdm` and the like, else the expression."""
        while isinstance(expression, cst.Call) and expression.args and self._names.call(expression) in _WRAPPERS:
            expression = expression.args[0].value
        return expression

    def is_batch_loop(self, loop: cst.CSTNode) -> bool:
        """Whether a `for` draws batches from a DataLoader."""
        return isinstance(loop, cst.For) and self.is_loader(self.iterated(loop.iter))

    def _all_are(self, expression: cst.CSTNode | None, name: str) -> bool:
        found = self.origins(expression)
        return bool(found) and all(self._classes.name_is_a(origin.name, name) for origin in found)

    def _origins(self, expression: cst.CSTNode | None, depth: int) -> list[Origin | None]:
        if depth > _DEPTH:
            return [None]
        match expression:
            case cst.Name():
                return self._of_name(expression, depth)
            case cst.Attribute():
                return self._of_attribute(expression, depth)
            case cst.Call():
                return self._of_call(expression, depth)
            case cst.Subscript():
                index = expression.slice[0].slice
                key = self._names.constant(index.value) if isinstance(index, cst.Index) else UNKNOWN
                return self._of_items(expression.value, depth, key)
            case cst.IfExp():
                return [*self._origins(expression.body, depth + 1), *self._origins(expression.orelse, depth + 1)]
            case cst.NamedExpr():
                return self._origins(expression.value, depth + 1)
        return [None]

    def _of_name(self, name: cst.Name, depth: int) -> list[Origin | None]:
        node = self._tree.enclosing_class(name)
        if node is not None and self._classes.is_self(name):
            return [Origin(f"{self._names.module}.{self._names.qualified(node)}")]
        found = [each for each in self._names.bindings.lookup(name) if not _is_none(each.value)]
        if not found:
            return [None]
        return [origin for binding in found for origin in self._of_binding(binding, name.value, depth)]

    def _of_binding(self, binding: Binding, name: str, depth: int) -> list[Origin | None]:
        if binding.kind is Kind.PARAMETER:
            return self._of_parameter(binding, depth)
        if binding.kind is Kind.LOOP and binding.value is not None:
            return self._of_items(binding.value, depth) if not binding.path else [None]
        if binding.kind is not Kind.ASSIGN:
            return [None]
        if binding.annotation is not None and binding.value is None:
            return [self._annotated(binding.annotation)]
        value = binding.value
        if binding.path:
            return self._of_part(value, binding.path, depth)
        if _mentions(value, name):  # `model = model.to(device)` adds nothing, `model = wrap(model)` is unknown
            return [] if self._keeps_object(value) else self._origins(value, depth + 3)
        return self._origins(value, depth + 1)

    def _keeps_object(self, value: cst.CSTNode | None) -> bool:
        return (
            isinstance(value, cst.Call)
            and isinstance(value.func, cst.Attribute)
            and value.func.attr.value in _SAME_OBJECT
        )

    def _of_parameter(self, binding: Binding, depth: int) -> list[Origin | None]:
        if binding.annotation is not None:
            annotated = self._annotated(binding.annotation)
            if annotated is not None:
                return [annotated]
        function = binding.scope
        if not isinstance(function, cst.FunctionDef):
            return [None]
        calls = (*self._hooks.calls_of.get(function, ()), *self._hooks.constructions.get(function, ()))
        if not calls or self._hooks.of(function):
            return [None]
        found: list[Origin | None] = []
        for call in calls:
            given = self.given(function, call, binding.name)
            found.extend(self._origins(given, depth + 1) if given is not None else [None])
        return found

    def given(self, function: cst.FunctionDef, call: cst.Call, parameter: str) -> cst.BaseExpression | None:
        """The expression a call of a function of this file gives for one of its parameters."""
        plain = [*function.params.posonly_params, *function.params.params]
        names = [each.name.value for each in plain]
        position = names.index(parameter) if parameter in names else None
        bound = isinstance(call.func, cst.Attribute) or function.name.value == "__init__"
        if position is not None and self._tree.class_of(function) and bound:
            position -= 1
        arg = self._names.argument(call, parameter, position)
        return arg.value if arg else None

    def _annotated(self, annotation: cst.BaseExpression) -> Origin | None:
        if isinstance(annotation, cst.BinaryOperation):  # `Optimizer | None`
            sides = [each for each in (annotation.left, annotation.right) if not _is_none(each)]
            return self._annotated(sides[0]) if len(sides) == 1 else None
        if isinstance(annotation, cst.Subscript) and (self._names.of(annotation.value) or "").endswith(".Optional"):
            index = annotation.slice[0].slice
            return self._annotated(index.value) if isinstance(index, cst.Index) else None
        name = self._names.of(annotation)
        return Origin(name) if name and "." in name and name != "builtins.object" else None

    def _of_attribute(self, attribute: cst.Attribute, depth: int) -> list[Origin | None]:
        node = self._tree.enclosing_class(attribute)
        if node is None or not self._classes.is_self(attribute.value):
            return [None]
        values = self._classes.attribute_values(node, attribute.attr.value)
        for base in self._classes.ancestors(node):
            local = self._classes.local(base)
            values.extend(self._classes.attribute_values(local, attribute.attr.value) if local else [])
        found = [each for value in values if not _is_none(value) for each in self._origins(value, depth + 1)]
        return found or [None]

    def _of_call(self, call: cst.Call, depth: int) -> list[Origin | None]:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _SAME_OBJECT:
            receiver = self._origins(func.value, depth + 1)
            if receiver and None not in receiver:
                return receiver
        if self._is_optimizers(call):
            return self._of_optimizers(call, (), depth)
        callee = self._hooks.callee(call)
        if callee is not None:
            return self._returned(callee, (), depth)
        name = self._names.of(func)
        return [Origin(name, call) if name else None]

    def _is_optimizers(self, call: cst.Call) -> bool:
        """`self.optimizers()` of a LightningModule."""
        func = call.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value == "optimizers"
            and self._classes.is_self(func.value)
            and self._classes.is_a(self._tree.enclosing_class(call), MODULE)
        )

    def _of_optimizers(self, call: cst.Call, path: tuple[int, ...], depth: int) -> list[Origin | None]:
        """What `self.optimizers()` gives: what `configure_optimizers` returns, some optimizer if that is out of sight."""
        node = self._tree.enclosing_class(call)
        method = self._classes.method(node, "configure_optimizers") if node is not None else None
        returns = self._tree.own(method, cst.Return) if method is not None else []
        value = returns[0].value if len(returns) == 1 else None
        if isinstance(value, cst.Tuple) and len(value.elements) == 2:
            first = value.elements[0].value
            value = first if isinstance(first, cst.List) else value  # `[optimizers], [schedulers]`
        if isinstance(value, cst.List) and not path and len(value.elements) == 1:
            path = (0,)
        found = self._of_part(value, path, depth + 1) if value is not None else []
        sure = all(each and self._classes.name_is_a(each.name, OPTIMIZER) for each in found)
        return found if found and sure else [Origin(OPTIMIZER, call)]

    def _returned(self, function: cst.FunctionDef, path: tuple[int, ...], depth: int) -> list[Origin | None]:
        found: list[Origin | None] = []
        for statement in self._tree.own(function, cst.Return):
            found.extend(self._of_part(statement.value, path, depth + 1))
        return found or [None]

    def _of_part(self, value: cst.CSTNode | None, path: tuple[int, ...], depth: int) -> list[Origin | None]:
        """Origins of `value[path]`, as tuple unpacking takes it."""
        if not path:
            return self._origins(value, depth + 1)
        if isinstance(value, (cst.Tuple, cst.List)) and path[0] < len(value.elements):
            return self._of_part(value.elements[path[0]].value, path[1:], depth)
        if isinstance(value, cst.Call):
            if self._is_optimizers(value) and len(path) == 1:
                return self._of_optimizers(value, path, depth)
            callee = self._hooks.callee(value)
            if callee is not None and depth <= _DEPTH:
                return self._returned(callee, path, depth + 1)
        return [None]

    def _of_items(self, container: cst.CSTNode, depth: int, key: object = UNKNOWN) -> list[Origin | None]:
        """Origins of what a list, tuple or dict display holds: of the item at `key`, or of every item."""
        if isinstance(container, cst.Call) and self._names.method(container) == "values":
            return self._of_items(container.func.value, depth) if isinstance(container.func, cst.Attribute) else [None]
        if isinstance(container, cst.Name):
            found = self._names.bindings.lookup(container)
            if len(found) != 1 or depth > _DEPTH:
                return [None]
            if found[0].kind is Kind.PARAMETER and isinstance(found[0].scope, cst.FunctionDef):
                function = found[0].scope
                given = [self.given(function, c, container.value) for c in self._hooks.calls_of.get(function, ())]
                items = [self._of_items(each, depth + 1, key) if each else [None] for each in given]
                return [origin for each in items for origin in each] or [None]
            if found[0].kind is Kind.ASSIGN and found[0].value is not None:
                return self._of_container(found[0].value, found[0].path, depth + 1, key)
            return [None]
        return self._of_container(container, (), depth, key)

    def _of_container(
        self, value: cst.CSTNode | None, path: tuple[int, ...], depth: int, key: object
    ) -> list[Origin | None]:
        if isinstance(value, cst.Call):
            callee = self._hooks.callee(value)
            returns = self._tree.own(callee, cst.Return) if callee is not None and depth <= _DEPTH else []
            return [o for each in returns for o in self._of_container(each.value, path, depth + 1, key)] or [None]
        if path:
            inner = (
                value.elements[path[0]].value
                if isinstance(value, cst.Tuple) and path[0] < len(value.elements)
                else None
            )
            return self._of_items(inner, depth + 1, key) if inner is not None else [None]
        if isinstance(value, (cst.List, cst.Tuple, cst.Dict)):
            return [origin for each in self._items(value, key) for origin in self._origins(each, depth + 1)] or [None]
        if isinstance(value, cst.Name):
            return self._of_items(value, depth + 1, key)
        if isinstance(value, cst.Attribute) and depth <= _DEPTH and self._classes.is_self(value.value):
            node = self._tree.enclosing_class(value)
            held = self._classes.attribute_values(node, value.attr.value) if node is not None else []
            return self._of_container(held[0], (), depth + 1, key) if len(held) == 1 else [None]
        return [None]

    def _items(self, display: cst.List | cst.Tuple | cst.Dict, key: object) -> list[cst.BaseExpression]:
        """The items of a display that `display[key]` can be; all of them for an unknown key."""
        if isinstance(display, cst.Dict):
            pairs = [(self._names.constant(e.key), e.value) for e in display.elements if isinstance(e, cst.DictElement)]
            return [value for known, value in pairs if key is UNKNOWN or known is UNKNOWN or known == key]
        plain = [each.value for each in display.elements if isinstance(each, cst.Element)]
        if isinstance(key, int) and len(plain) == len(display.elements):
            return plain[key : key + 1 or None]
        return plain


def _is_none(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _mentions(value: cst.CSTNode | None, name: str) -> bool:
    """Whether a call chain starts from a name: `model.to(x)` mentions `model`."""
    while isinstance(value, (cst.Call, cst.Attribute)):
        value = value.func if isinstance(value, cst.Call) else value.value
    return isinstance(value, cst.Name) and value.value == name
