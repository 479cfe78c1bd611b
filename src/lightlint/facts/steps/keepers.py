"""Which names and attributes outlive an iteration and gather something in each, and what becomes of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind, unpacked
from lightlint.facts.code.tree import Loop
from lightlint.facts.data.loops import LoopKind
from lightlint.facts.graphs.gradients import Gradients
from lightlint.facts.steps.steps import Steps
from lightlint.facts.values.calls import changed_in_place, given

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_SHRINKING = {"pop", "clear", "popleft", "remove"}
_CUTTING = {"item", "detach", "tolist", "numpy", "float", "int", "detach_"}
_CONTAINERS = {
    "builtins.list",
    "builtins.dict.fromkeys",
    "collections.OrderedDict",
    "collections.defaultdict",
    "builtins.dict",
    "collections.Counter",
}
_TRAINING = re.compile(r"backward|^grad$|step|train|update|optimi[sz]e|fit", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Keeper:
    """A statement that adds a value to what outlives the iteration.

    `key` is what gathers, `values` what is added; `loop` the loop whose iterations it outlives, None for an attribute in
    a method that others call once per batch.
    """

    node: cst.CSTNode
    key: str
    values: tuple[cst.BaseExpression, ...]
    loop: Loop | None
    is_list: bool


class Keepers:
    """The keepers of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names
        self._anew: dict[tuple[int, str], list[cst.CSTNode]] = {}
        self._ways: dict[tuple[int, str], list[cst.CSTNode]] = {}

    def of(self, node: cst.CSTNode) -> Keeper | None:
        """The keeper that a statement or call is: `a += b`, `a = c * a + d * b`, `a = lerp(a, b, c)`, `a.append(b)`,
        `self.a.mul_(c).add_(b)`."""
        match node:
            case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign()):
                return self._keeper(node, node.target, [node.value], is_list=isinstance(node.value, cst.List))
            case cst.Assign(
                targets=[cst.AssignTarget(target=target)], value=cst.BinaryOperation() | cst.Call() as value
            ):
                key = self._names.key(target)
                parts = self._blended(value) if key and self._takes(value, key) else []
                own = [part for part in parts if self._names.key(part) == key]
                others = [part for part in parts if part not in own]
                return self._keeper(node, target, others, is_list=False) if own and others else None
            case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="append")), args=[added]):
                return self._keeper(node, holder, [added.value], is_list=True)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="add_" | "lerp_" | "sub_")), args=[added, *_]):
                changed = changed_in_place(node)
                if isinstance(changed, cst.Attribute) and self._facts.classes.is_self(changed.value):
                    return self._keeper(node, changed, [added.value], is_list=False)
        return None

    def _takes(self, value: cst.BinaryOperation | cst.Call, key: str) -> bool:
        """Whether arithmetic, or a call with its receiver, is given what has a key."""
        if isinstance(value, cst.BinaryOperation):
            return True
        receiver = [value.func.value] if isinstance(value.func, cst.Attribute) else []
        return any(self._names.key(each) == key for each in (*receiver, *(arg.value for arg in value.args)))

    def _blended(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What a sum is made of, or what `torch.lerp` or a function of this file that gives a sum was given for it."""
        match value:
            case cst.Call() if self._names.of(value.func) == "torch.lerp":
                return [arg.value for arg in value.args[:2]]
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="lerp")), args=[end, _]):
                return [receiver, end.value]
            case cst.Call() if (callee := self._facts.hooks.callee(value)) is not None:
                returns = self._facts.values.returns(callee)
                inner = _operands(returns[0]) if len(returns) == 1 and returns[0] is not None else []
                passed = [self._facts.values.given(callee, value, self._names.key(each)) for each in inner]
                return [each for each in passed if each is not None] if len(inner) > 1 else []
        return _operands(value)

    def _keeper(
        self, node: cst.CSTNode, target: cst.BaseExpression, values: list[cst.BaseExpression], *, is_list: bool
    ) -> Keeper | None:
        key, loops = self._names.key(target) or self._dict_of(target), self._loops(node)
        loop = loops[0] if loops else None
        root = _root(target)
        if not key or (loop is not None and not self._trains_or_draws(loop)) or self._picks(node, root):
            return None
        on_self = (
            root is not None
            and self._facts.classes.is_self(root)
            and isinstance(target, (cst.Attribute, cst.Subscript))
        )
        if not on_self and (loop is None or root is None or not self._outlives(node, root, loop)):
            return None
        if is_list and not self._is_list(target):
            return None
        if self._shrinks(key, node):
            return None
        return Keeper(node, key, tuple(values), loop, is_list)

    def _dict_of(self, target: cst.BaseExpression) -> str:
        """What surely is a dict, of a target that is one of its items, whichever: `totals` of `totals[name]`."""
        return self._names.key(target.value) if isinstance(target, cst.Subscript) and self._is_list(target) else ""

    def _loops(self, node: cst.CSTNode) -> list[Loop]:
        """The loops around a node, without those over the parts of one batch."""
        return [each for each in self._tree.loops(node) if not self._is_over_parts(each)]

    def _is_over_parts(self, loop: Loop) -> bool:
        """Whether a loop runs over the items of a dict and trains with none of them."""
        return self._facts.fact(Gradients).loss_dicts.loop_over(loop) is not None and not self._trains_or_draws(loop)

    def _picks(self, node: cst.CSTNode, root: cst.Name | None) -> bool:
        """Whether a test, of more than what is there already, chooses among the items of a dict those that a node takes."""
        dicts = [each for each in self._tree.loops(node) if self._is_over_parts(each)]
        tests = [
            above.test
            for above in self._tree.ancestors(node)
            if isinstance(above, cst.If) and any(self._tree.contains(loop.body, above) for loop in dicts)
        ]
        known = root.value if root is not None else ""
        return any(known not in {name.value for name in self._tree.within(test, cst.Name)} for test in tests)

    def _trains_or_draws(self, loop: Loop) -> bool:
        kind = self._facts.loops.kind(loop)
        return kind is LoopKind.BATCH or (
            kind is LoopKind.OTHER and bool(self._facts.fact(Steps).runs(loop.body, self._facts.loops.is_backward))
        )

    def _outlives(self, node: cst.CSTNode, name: cst.Name, loop: Loop) -> bool:
        """Whether what a name holds at a node is still there when a later iteration comes to the node."""
        found = self._names.bindings.lookup(name)
        if found and all(each.kind is Kind.PARAMETER for each in found):
            return not isinstance(node, cst.AugAssign | cst.Assign) or self._names.key(name) != self._changed(node)
        if not found or any(each.kind not in {Kind.ASSIGN, Kind.AUGMENT} for each in found):
            return False
        anew = self._begun_anew(found, name.value)
        before = any(not self._tree.contains(loop, each) for each in anew)
        flow = self._facts.flow(self._tree.owner(node))
        return before and flow.reaches_in_later_iteration(loop, node, [node], avoiding=anew)

    def _begun_anew(self, bindings: list[Binding], name: str) -> list[cst.CSTNode]:
        """The assignments to a name, which has these bindings, that keep nothing of what it held."""
        key = (id(bindings), name)
        if key not in self._anew:
            self._anew[key] = [
                statement
                for each in bindings
                if each.kind is Kind.ASSIGN and (statement := self._tree.statement(each.site)) is not None
                if each.value is None or self.cuts(each.value) or not self._holds(each.value, {name})
            ]
        return self._anew[key]

    def _changed(self, node: cst.AugAssign | cst.Assign) -> str:
        """The key of what a statement changes."""
        return self._names.key(node.target if isinstance(node, cst.AugAssign) else node.targets[0].target)

    def _is_list(self, target: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether what is appended to surely is a list: it is only ever assigned list displays, or is an item of a dict.

        A parameter is what every call in sight gives for it.
        """
        while isinstance(target, cst.Subscript):
            target = target.value
        if isinstance(target, cst.Name):
            found = self._names.bindings.lookup(target)
            if len(found) == 1 and found[0].kind is Kind.PARAMETER and isinstance(found[0].scope, cst.FunctionDef):
                function = found[0].scope
                calls = self._facts.fact(Steps).calls_of.get(function, ()) if depth < 3 else ()
                passed = [given(self._names, self._facts.classes, function, call, target.value) for call in calls]
                return bool(passed) and all(each is not None and self._is_list(each, depth + 1) for each in passed)
            values = [each.value for each in self._names.bindings.lookup(target) if each.kind is not Kind.AUGMENT]
        elif isinstance(target, cst.Attribute):
            around = self._tree.enclosing_class(target)
            values = list(self._facts.classes.attribute_values(around, target.attr.value)) if around is not None else []
        else:
            return False
        return bool(values) and all(
            isinstance(each, (cst.List, cst.Dict, cst.DictComp)) or self._names.call(each) in _CONTAINERS
            for each in values
        )

    def _shrinks(self, key: str, node: cst.CSTNode) -> bool:
        """Whether the keeper's function takes something out again, or cuts the graph of what it holds, behind the node."""
        owner = self._tree.owner(node)
        flow = self._facts.flow(owner)
        ways = [each for each in self._lessening(owner, key) if each is not node]
        loops = self._loops(node)
        if loops:
            return flow.reaches_in_same_iteration(loops[0], node, ways)
        return flow.reaches(node, ways)

    def _lessening(self, owner: cst.CSTNode, key: str) -> list[cst.CSTNode]:
        """What takes something out of what has a key, or cuts its graph, in a function."""
        known = (id(owner), key)
        if known in self._ways:
            return self._ways[known]
        ways: list[cst.CSTNode] = [
            call
            for call in self._tree.own(owner, cst.Call)
            if self._names.method(call) in _SHRINKING | {"detach_"} and self._receives(call, key)
        ]
        for assign in self._tree.own(owner, cst.Assign, cst.Del):
            targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
            if any(self._names.key(_unsliced(each)) == key for each in targets) and (
                isinstance(assign, cst.Del) or isinstance(assign.value, cst.Subscript) or self.cuts(assign.value)
            ):
                ways.append(assign)
        self._ways[known] = ways
        return ways

    def _receives(self, call: cst.Call, key: str) -> bool:
        return isinstance(call.func, cst.Attribute) and self._names.key(_unsliced(call.func.value)) == key

    def cuts(self, value: cst.BaseExpression) -> bool:
        """Whether a value is taken out of its graph: `x.item()`, `float(x)`."""
        return any(self._names.method(call) in _CUTTING for call in self._tree.within(value, cst.Call))

    def is_emptied(self, keeper: Keeper) -> bool:
        """Whether the class of an attribute empties or replaces it in a method other than the constructor."""
        around = self._tree.enclosing_class(keeper.node)
        if around is None:
            return False
        calls = self._tree.within(around, cst.Call)
        if any(self._names.method(call) in _SHRINKING and self._receives(call, keeper.key) for call in calls):
            return True
        assigned = [t for t in self._tree.within(around, cst.AssignTarget) if self._names.key(t.target) == keeper.key]
        names = {function.name.value for t in assigned if (function := self._tree.function(t)) is not None}
        return bool(names - {"__init__"})

    def is_restarted(self, keeper: Keeper) -> bool:
        """Whether some iterations of the keeper's loop begin it anew, as a sum over the batches of one update is."""
        if keeper.loop is None:
            return False
        return any(
            self._names.key(target) == keeper.key and source is not None and not self._holds(source, {keeper.key})
            for assign in self._tree.own(keeper.loop.body, cst.Assign)
            for each in assign.targets
            for target, source, _ in unpacked(each.target, assign.value)
        )

    def reaches(self, keeper: Keeper) -> tuple[bool, bool]:
        """Whether what a keeper gathers comes to a backward pass, and whether it leaves sight (returned, stored, passed on).

        Followed through assignments in its function; for an attribute in all methods of the class.
        """
        owner = self._tree.owner(keeper.node)
        around = self._tree.enclosing_class(keeper.node) if "." in keeper.key else None
        room: cst.CSTNode = around if around is not None else owner
        held = self._followed(room, keeper)
        trained = leaves = False
        for call in self._tree.within(room, cst.Call):
            callee = self._facts.fact(Steps).callee(call)
            trains = self._facts.loops.is_backward(call) or (
                callee is not None and bool(self._facts.fact(Steps).runs(callee.body, self._facts.loops.is_backward))
            )
            trains |= callee is None and bool(_TRAINING.search(self._names.method(call)))
            if trains and call is not keeper.node and self._holds(call, held):
                trained = True
        for node in self._tree.within(room, cst.Return, cst.Yield):
            if node.value is not None and self._holds(node, held):
                leaves = True
        return trained, leaves

    def _followed(self, room: cst.CSTNode, keeper: Keeper) -> set[str]:
        held = {keeper.key}
        assigns = self._tree.within(room, cst.Assign)
        while True:
            size = len(held)
            for assign in assigns:
                if self._holds(assign.value, held) and not self.cuts(assign.value):
                    held |= {key for each in assign.targets if (key := self._names.key(each.target))}
            if len(held) == size:
                return held

    def _holds(self, node: cst.CSTNode, keys: set[str]) -> bool:
        parts = (*self._tree.within(node, cst.Name, cst.Attribute), *self._tree.within(node, cst.Subscript))
        return any(self._names.key(each) in keys for each in parts)


def _operands(expression: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(expression, cst.BinaryOperation):
        return [*_operands(expression.left), *_operands(expression.right)]
    return [expression]


def _unsliced(expression: cst.BaseExpression) -> cst.BaseExpression:
    """What a slice is taken of: `a` of `a[:-1]` and `a[0]`."""
    return expression.value if isinstance(expression, cst.Subscript) else expression


def _root(expression: cst.BaseExpression) -> cst.Name | None:
    while isinstance(expression, (cst.Attribute, cst.Subscript)):
        expression = expression.value
    return expression if isinstance(expression, cst.Name) else None
