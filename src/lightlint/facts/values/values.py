"""What an expression holds: the constructor calls its value comes from, followed through names, attributes and calls.

Roles (optimizer, loader, module, ...) come from constructors and annotations only; how a name is spelled proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import Names
from lightlint.facts.code.reaching import Reaching
from lightlint.facts.code.tree import Tree
from lightlint.facts.lightning.hooks import Hooks
from lightlint.facts.objects.annotations import annotated, is_none
from lightlint.facts.objects.classes import MODULE, NN_MODULE, OPTIMIZER, Classes
from lightlint.facts.values.calls import given
from lightlint.facts.values.containers import Containers, item_of
from lightlint.facts.values.iterables import Iterables
from lightlint.facts.values.origins import DEPTH, keeps_object
from lightlint.facts.values.origins import SAME_OBJECT as SAME_OBJECT
from lightlint.facts.values.origins import Origin as Origin
from lightlint.facts.values.parts import Parts, Source

_SCALERS = {"torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"}
_PARALLEL = {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel"}
_PARALLEL |= {"torch.compile"}


class Values:
    """Origins of the values of one file."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, hooks: Hooks, reaching: Reaching) -> None:
        self._tree = tree
        self._names = names
        self._classes = classes
        self._hooks = hooks
        self.parts = Parts(tree, names, classes)
        self._containers = Containers(tree, names, classes, hooks, self)
        self._iterables = Iterables(tree, names, classes, hooks, reaching)
        self._searched: dict[tuple[cst.CSTNode | None, int], list[Origin | None]] = {}
        self._named: dict[tuple[str, int, int], list[Origin | None]] = {}  # by the `id` of a scope
        self._known: dict[int, tuple[Origin, ...]] = {}  # by the `id` of what was found for a name

    def origins(self, expression: cst.CSTNode | None) -> tuple[Origin, ...]:
        """Every constructor an expression's value can come from; empty if any of its sources is out of sight."""
        found = self.origins_at(expression, 0)
        if id(found) not in self._known:  # it lives as long as this does
            known = dict.fromkeys(origin for origin in found if origin is not None)
            self._known[id(found)] = () if None in found else tuple(known)
        return self._known[id(found)]

    def constructor(self, expression: cst.CSTNode | None) -> Origin | None:
        """The one origin of a value, None if there are several or it is unknown."""
        found = self.origins(expression)
        return found[0] if len({origin.name for origin in found}) == 1 else None

    def unwrapped(self, expression: cst.CSTNode | None, depth: int = 0) -> tuple[Origin, ...]:
        """As `origins`, with the module in the place of what wraps it for several devices or compiles it."""
        found = self.origins(expression)
        plain = [origin for origin in found if origin.name not in _PARALLEL]
        if plain or depth > 2:
            return tuple(plain)  # `net = DataParallel(net)` adds nothing
        calls = [origin.call for origin in found if origin.call is not None and origin.call.args]
        inner = [self.unwrapped(call.args[0].value, depth + 1) for call in calls]
        return tuple(each for one in inner for each in one) if all(inner) else ()

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
        """What a loop really draws from: the argument of `enumerate`, `tqdm` and the like, by a name too, else the expression."""
        return self._iterables.drawn(expression)

    def is_batch_loop(self, loop: cst.CSTNode) -> bool:
        """Whether a `for` draws batches from a DataLoader."""
        return isinstance(loop, cst.For) and self.is_loader(self.iterated(loop.iter))

    def _all_are(self, expression: cst.CSTNode | None, name: str) -> bool:
        found = self.origins(expression)
        return bool(found) and all(self._classes.name_is_a(origin.name, name) for origin in found)

    def origins_at(self, expression: cst.CSTNode | None, depth: int) -> list[Origin | None]:
        """As `origins`, some steps into a search: None stands for a source out of sight."""
        if depth > DEPTH:
            return [None]
        known = self._searched.get((expression, depth))
        if known is None:  # functions that call one another would be searched again by each way that leads to them
            known = self._searched[expression, depth] = self._search(expression, depth)
        return known

    def _search(self, expression: cst.CSTNode | None, depth: int) -> list[Origin | None]:
        match expression:
            case cst.Name():
                return self._of_name(expression, depth)
            case cst.Attribute():
                return self._of_attribute(expression, depth)
            case cst.Call():
                return self._of_call(expression, depth)
            case cst.Subscript():
                index = expression.slice[0].slice
                if len(expression.slice) != 1 or not isinstance(index, cst.Index):
                    return [None]
                return self._containers.of_items(expression.value, depth, self._names.constant(index.value))
            case cst.IfExp():
                return [*self.origins_at(expression.body, depth + 1), *self.origins_at(expression.orelse, depth + 1)]
            case cst.NamedExpr():
                return self.origins_at(expression.value, depth + 1)
        return [None]

    def _of_name(self, name: cst.Name, depth: int) -> list[Origin | None]:
        node = self._classes.self_class(name)
        if node is not None:
            return [Origin(self._names.defined(node))]
        key = name.value, id(self._tree.scope(name)), depth
        if key not in self._named:  # a name that is bound n times is read n times, too
            self._named[key] = self._of_bindings(self._names.bindings.lookup(name), name.value, depth)
        return self._named[key]

    def _of_bindings(self, bindings: Sequence[Binding], name: str, depth: int) -> list[Origin | None]:
        found = [each for each in bindings if each.kind is Kind.PARAMETER or not is_none(each.value)]
        if not found:
            return [None]
        return [origin for binding in found for origin in self._of_binding(binding, name, depth)]

    def _of_binding(self, binding: Binding, name: str, depth: int) -> list[Origin | None]:
        if binding.kind is Kind.PARAMETER:
            return self._of_parameter(binding, depth)
        if binding.kind is Kind.LOOP and binding.value is not None:
            return self._containers.of_loop(binding.value, binding.path, depth)
        if binding.kind is not Kind.ASSIGN:
            return [None]
        if binding.annotation is not None:
            return self._as_promised(binding.annotation, self.origins_at(binding.value, depth + 1))
        value = binding.value
        if binding.path:
            return self._of_part(value, binding.path, depth)
        if self._iterables.wraps_name(value, name):  # `loader = tqdm(loader)`
            return []
        if _mentions(value, name):  # `model = model.to(device)` adds nothing, `model = wrap(model)` is unknown
            return [] if keeps_object(value) else self.origins_at(value, depth + 3)
        return self.origins_at(value, depth + 1)

    def _of_parameter(self, binding: Binding, depth: int) -> list[Origin | None]:
        function = binding.scope
        if not isinstance(function, cst.FunctionDef):
            return [None]
        if binding.site in (function.params.star_arg, function.params.star_kwarg):
            return [None]  # a tuple or a dict, whatever the annotation of its items
        found = self._given_for(binding, function, depth)
        return self._as_promised(binding.annotation, found) if binding.annotation is not None else found

    def _given_for(self, binding: Binding, function: cst.FunctionDef, depth: int) -> list[Origin | None]:
        """Origins of what the calls of a function of this file give for a parameter."""
        calls = (*self._hooks.calls_of.get(function, ()), *self._hooks.constructions.get(function, ()))
        if not calls or self._hooks.of(function):
            return [None]
        found: list[Origin | None] = []
        for call in calls:
            given = self.given(function, call, binding.name)
            if given is None and not self._names.has_star(call):
                given = binding.value
            if not is_none(given):
                found.extend(self.origins_at(given, depth + 1) if given is not None else [None])
        return found or [None]

    def given(self, function: cst.FunctionDef, call: cst.Call, parameter: str) -> cst.BaseExpression | None:
        """The expression a call of a function of this file gives for one of its parameters; None for its default."""
        return given(self._names, self._classes, function, call, parameter)

    def _as_promised(self, annotation: cst.BaseExpression, found: list[Origin | None]) -> list[Origin | None]:
        """Origins with what an annotation adds: the class of what is out of sight, and of what unknown functions give."""
        name = annotated(self._names, annotation, self._tree.scope(annotation))
        return [self._known_as(name, each) for each in found] if name else found

    def _known_as(self, name: str, origin: Origin | None) -> Origin:
        if origin is None:
            return Origin(name)
        is_class = origin.name.rpartition(".")[2][:1].isupper() or self._classes.local(origin.name) is not None
        return origin if is_class else Origin(name, origin.call)

    def _of_attribute(self, attribute: cst.Attribute, depth: int) -> list[Origin | None]:
        node = self._classes.self_class(attribute.value)
        name = attribute.attr.value
        if node is None:
            return self._of_part_of_object(attribute, depth) if self.parts.may_keep(name) else [None]
        return self._of_sources(self.parts.of_self(node, name), depth)

    def _of_part_of_object(self, attribute: cst.Attribute, depth: int) -> list[Origin | None]:
        """Origins of what objects of this file's classes keep in an attribute: `net.optim`."""
        objects = self.origins_at(attribute.value, depth + 1)
        nodes = [self._classes.local(each.name) if each is not None else None for each in objects]
        found: list[Origin | None] = []
        for node in dict.fromkeys(nodes):
            sources = self.parts.of_object(node, attribute.attr.value) if node is not None else []
            found += self._of_sources(sources, depth) if sources else [None]
        return found or [None]

    def _of_sources(self, sources: list[Source], depth: int) -> list[Origin | None]:
        found: list[Origin | None] = []
        for value, path in sources:
            if value is None:
                found.append(None)
            elif not is_none(value):
                found.extend(self._of_part(value, path, depth))
        return found or [None]

    def _of_call(self, call: cst.Call, depth: int) -> list[Origin | None]:
        func = call.func
        if isinstance(func, cst.Attribute) and self.parts.may_give_itself(func.attr.value):
            receiver = self.origins_at(func.value, depth + 1)
            if receiver and all(each and self.parts.gives_itself(each.name, func.attr.value) for each in receiver):
                return receiver
        if self.is_optimizers(call):
            return self._of_optimizers(call, (), depth)
        callee = self._hooks.callee(call)
        if callee is not None:
            return self._returned(callee, (), depth)
        name = self._names.of(func) or self._containers.called(call)
        if name and name.endswith(".load_from_checkpoint") and self._classes.name_is_a(name.rpartition(".")[0], MODULE):
            name = name.rpartition(".")[0]
        return [Origin(name, call) if name else None]

    def is_optimizers(self, call: cst.Call) -> bool:
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
        if isinstance(value, (cst.List, cst.Tuple)) and not path and len(value.elements) > 1:
            return [None]  # a list of optimizers
        if isinstance(value, cst.List) and not path and len(value.elements) == 1:
            path = (0,)
        found = self._of_part(value, path, depth + 1) if value is not None else []
        sure = all(each and self._classes.name_is_a(each.name, OPTIMIZER) for each in found)
        return found if found and sure else [Origin(OPTIMIZER, call)]

    def _returned(self, function: cst.FunctionDef, path: tuple[int, ...], depth: int) -> list[Origin | None]:
        found = [self._of_part(value, path, depth + 1) for value in self.returns(function)]
        return [origin for each in found for origin in each] or [None]

    def returns(self, function: cst.FunctionDef) -> list[cst.BaseExpression | None]:
        """What a call of a function can give; nothing for generators and coroutines, which give something else."""
        if function.asynchronous is not None or self._tree.own(function.body, cst.Yield):
            return []
        return [statement.value for statement in self._tree.own(function.body, cst.Return)]

    def _of_part(self, value: cst.CSTNode | None, path: tuple[int, ...], depth: int) -> list[Origin | None]:
        """Origins of `value[path]`, as tuple unpacking takes it."""
        if not path:
            return self.origins_at(value, depth + 1)
        if isinstance(value, (cst.Tuple, cst.List)):
            item = item_of(value, path[0])
            return self._of_part(item, path[1:], depth) if item is not None else [None]
        if isinstance(value, cst.Call):
            if self.is_optimizers(value) and len(path) == 1:
                return self._of_optimizers(value, path, depth)
            callee = self._hooks.callee(value)
            if callee is not None and depth <= DEPTH:
                return self._returned(callee, path, depth + 1)
        return [None]


def _mentions(value: cst.CSTNode | None, name: str) -> bool:
    """Whether a call chain starts from a name: `model.to(x)` mentions `model`."""
    while isinstance(value, (cst.Call, cst.Attribute)):
        value = value.func if isinstance(value, cst.Call) else value.value
    return isinstance(value, cst.Name) and value.value == name
