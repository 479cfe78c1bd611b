from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import ParametersChanged, Rebound
from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, replace_statement

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_TENSORS: dict[str, tuple[int, ...]] = {
    "parameters": (),
    "buffers": (),
    "named_parameters": (1,),
    "named_buffers": (1,),
}
_SAME_ITEMS = {f"builtins.{name}" for name in ("iter", "list", "reversed", "tuple")} | {"tqdm.tqdm", "tqdm.auto.tqdm"}
# of torch what leaves its arguments as they are: not `torch.distributed`, not `torch.nn.init`
_PURE = re.compile(r"torch\.(?:nn\.functional\.|Tensor\.)?[a-z]\w*[a-z\d]$|torch\.nn\.Parameter$|torch\.\w*Tensor$")
_WITH_EFFECT = {"backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "set"}
_DEPTH = 4
_WORDS = frozenset([*_TENSORS, "state_dict"])
_ENDS = (cst.Return, cst.Raise, cst.Break, cst.Continue)


class ParameterReboundInLoop(Check):
    def wants_rest(self) -> frozenset[str]:
        """Those of parameters, where a name may get a value that nothing reads."""
        return _WORDS if any(map(self._may_be_lost, self.tree.all(cst.Assign))) else frozenset()

    def _may_be_lost(self, assign: cst.Assign) -> bool:
        name = assign.targets[0].target
        if len(assign.targets) != 1 or not isinstance(name, cst.Name) or self.tree.function(assign) is None:
            return len(assign.targets) == 1 and isinstance(name, cst.Name) and bool(self.tree.loops(assign))
        if self.names.constant(assign.value) is not UNKNOWN or self._is_read_next(assign, name.value):
            return False
        return not self._is_read(name, self.names.bindings.lookup(name))

    def _is_read_next(self, assign: cst.Assign, name: str) -> bool:
        """Whether one of the next statements reads a name, before anything else may happen to it."""
        line = self.tree.parent(assign)
        block = self.tree.parent(line) if line is not None else None
        body = getattr(block, "body", ())
        behind = body[body.index(line) + 1 :] if isinstance(body, (list, tuple)) and line in body else ()
        for statement in behind:
            words = [each for each in self.tree.within(statement, cst.Name) if each.value == name]
            if words:
                targets = {id(each.target) for each in self.tree.within(statement, cst.AssignTarget)}
                return any(id(each) not in targets for each in words) and not any(id(each) in targets for each in words)
            if any(self.tree.within(statement, kind) for kind in _ENDS):
                return False
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        name = node.targets[0].target if len(node.targets) == 1 else None
        if not isinstance(name, cst.Name):
            return
        found = self.names.bindings.lookup(name)
        loops = [each for each in found if each.kind is Kind.LOOP and self._is_around(each, node)]
        tensors = self._tensors_beside(loops[-1]) if loops else set()
        if not tensors or not self._is_computed(node.value, name.value, tensors) or self._is_read(name, found):
            return
        sure = name.value in tensors
        self.report(
            node,
            _message(name.value),
            repair=Repair("write into the tensor", self._draft(node, name), Applicability.UNSAFE) if sure else None,
        )

    def _is_around(self, binding: Binding, node: cst.Assign) -> bool:
        return any(self.tree.contains(loop, binding.site) for loop in self.tree.loops(node))

    def _tensors_beside(self, binding: Binding) -> set[str]:
        """The targets of the loop that binds a name, where these surely are parameters or buffers of modules."""
        loop = next(each for each in self.tree.ancestors(binding.site) if isinstance(each, cst.For))
        inside = {id(each) for each in self.tree.within(loop.target, cst.Name)}
        named = [each for name in self.tree.within(loop.target, cst.Name) for each in self.names.bindings.lookup(name)]
        targets = [each for each in named if id(each.site) in inside]
        return {each.name for each in targets if self._is_tensor(each.value, each.path, 0)}

    def _is_tensor(self, iterated: cst.CSTNode | None, path: tuple[int, ...], depth: int) -> bool:
        """Whether `item[path]` of what a loop iterates is a tensor that a module holds."""
        if isinstance(iterated, cst.Name) and depth < _DEPTH:
            found = self.names.bindings.lookup(iterated)
            value = found[0].value if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            return self._is_tensor(value, path, depth + 1)
        if not isinstance(iterated, cst.Call):
            return False
        name, first = self.names.of(iterated.func), path[0] if path else 0
        if name == "builtins.zip" and path:
            given = iterated.args[first] if 0 <= first < len(iterated.args) else None
            stars = any(arg.star or arg.keyword for arg in iterated.args[: first + 1])
            return given is not None and not stars and self._is_tensor(given.value, path[1:], depth + 1)
        if name == "builtins.enumerate" and first == 1 and iterated.args:
            return self._is_tensor(iterated.args[0].value, path[1:], depth + 1)
        if name in _SAME_ITEMS and iterated.args:
            return self._is_tensor(iterated.args[0].value, path, depth + 1)
        return self._is_of_module(iterated, path)

    def _is_of_module(self, call: cst.Call, path: tuple[int, ...]) -> bool:
        method, func = self.names.method(call), call.func
        if not isinstance(func, cst.Attribute) or self.hooks.callee(call) is not None:
            return False
        if method in {"items", "values"}:
            return path == ((1,) if method == "items" else ()) and self._is_state(func.value, 0)
        return _TENSORS.get(method) == path

    def _is_state(self, value: cst.CSTNode | None, depth: int) -> bool:
        """Whether a value is a module's `state_dict()`; of an optimizer's the items are no tensors."""
        if isinstance(value, cst.Name) and depth < _DEPTH:
            found = self.names.bindings.lookup(value)
            plain = len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path
            return plain and self._is_state(found[0].value, depth + 1)
        called = isinstance(value, cst.Call) and self.names.method(value) == "state_dict"
        return called and not self.values.is_optimizer(getattr(getattr(value, "func", None), "value", None))

    def _is_computed(self, value: cst.BaseExpression, name: str, tensors: set[str]) -> bool:
        """Whether a value is made of the loop's tensors and nothing is done to these on the way."""
        own = value
        while isinstance(own, cst.Attribute):
            own = own.value
        if isinstance(own, cst.Name) and own.value == name:
            return False  # `p = p.data` was not meant to write anything
        calls = [call for call in self.tree.within(value, cst.Call) if self._reads(call, tensors)]
        return self._reads(value, tensors) and all(self._is_pure(call, tensors) for call in calls)

    def _reads(self, node: cst.CSTNode, names: set[str]) -> bool:
        return any(each.value in names for each in self.tree.within(node, cst.Name))

    def _is_pure(self, call: cst.Call, tensors: set[str]) -> bool:
        if self.names.argument(call, "out") is not None or self.names.method(call).endswith("_"):
            return False
        name = self.names.of(call.func)
        if name is not None:
            return bool(_PURE.match(name))
        func = call.func
        is_method = isinstance(func, cst.Attribute) and self._reads(func.value, tensors)
        return is_method and self.names.method(call) not in _WITH_EFFECT

    def _is_read(self, name: cst.Name, found: list[Binding]) -> bool:
        """Whether anything may read what a name was given, before it gets another value."""
        home = self.names.bindings.home(name.value, self.tree.scope(name)) or self.tree.module
        bare = {id(each.site) for each in found if each.kind is not Kind.AUGMENT}
        uses = [each for each in self.tree.within(home, cst.Name) if each.value == name.value and id(each) not in bare]
        uses = [each for each in uses if not self.names.is_word(each) and self.names.bindings.lookup(each) == found]
        owner = self.tree.owner(name)
        flow, others = self.facts.flow(owner), [each.site for each in found if each.site is not name]
        return any(
            self.tree.owner(each) is not owner
            or (flow.point_of(each) is None and not self._is_in_value(each, name))
            or flow.reaches(name, [each], avoiding=others)
            for each in uses
        )

    def _is_in_value(self, use: cst.Name, name: cst.Name) -> bool:
        """Whether a name is read where its new value is worked out, as in a lambda that is called there."""
        statement = self.tree.statement(name)
        return statement is not None and self.tree.contains(statement, use)

    def _draft(self, node: cst.Assign, name: cst.Name) -> Draft | None:
        if not isinstance(node.value, (cst.BinaryOperation, cst.Name)):
            return None
        return replace_statement(self.code, node, f"{name.value}.data.copy_({self.code.text_of(node.value)})")

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parameters that a loop comes to in whatever way, as far as the name that loses one is not read afterwards."""
        for path in entry.paths:
            for event in path.of(Rebound):
                changes = (each for each in path.of(ParametersChanged) if event.before in each.parameters)
                node = self.node_of(event.site) if event.where.turns else None
                if node is None or any(event.site in each.where.places for each in changes):
                    continue
                assign = self._assign(node)
                name = assign.targets[0].target if assign is not None and len(assign.targets) == 1 else None
                if assign is not None and isinstance(assign.value, cst.Attribute) and event.after.parameter:
                    continue  # the parameter of the next module is looked at: none is meant to be written
                if isinstance(name, cst.Name) and not self._is_read(name, self.names.bindings.lookup(name)):
                    yield Fault.at(event, _message(name.value))

    def _assign(self, node: cst.CSTNode) -> cst.Assign | None:
        found = [node, *self.tree.ancestors(node), *self.tree.within(node, cst.Assign)]
        return next((each for each in found if isinstance(each, cst.Assign)), None)


def _message(name: str) -> str:
    return f"only rebinds the loop variable `{name}`, which nothing reads afterwards: no tensor is changed"
