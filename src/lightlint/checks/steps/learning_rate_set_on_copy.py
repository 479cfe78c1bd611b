from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Appended, CopySet, StateLoaded, Written
from lightlint.explore.queries import is_held
from lightlint.facts.bindings import Binding, Kind
from lightlint.finding import Applicability
from lightlint.fixes.expressions import replace

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry


_GROUPS = "param_groups"
_STORES = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)


class LearningRateSetOnCopy(Check):
    def visit_Subscript(self, node: cst.Subscript) -> None:
        optimizer = self._optimizer(node)
        if optimizer is None:
            return
        groups: list[cst.BaseExpression] = [node]
        if isinstance(loop := self.tree.parent(node), (cst.For, cst.CompFor)) and isinstance(loop.target, cst.Name):
            bound = self.names.bindings.lookup(loop.target)
            uses = self._uses(bound[0]) if len(bound) == 1 else []
            groups = list(uses) if all(map(self._is_item, uses)) else []
            changed = [each for each in groups if self._changes(each)]
        else:
            changed = [each for each in groups if self._is_item(each) and self._changes(self.tree.parent(each) or each)]
        if changed:
            self._tell(node, optimizer, changed[0])

    def _tell(self, node: cst.Subscript, optimizer: cst.BaseExpression, changed: cst.CSTNode) -> None:
        repair = None
        if isinstance(node.value, cst.Call):
            name = self.code.text_of(optimizer)
            draft = replace(self.code, node, f"{name}.{_GROUPS}")
            repair = Repair(f"change the groups of `{name}` itself", draft, Applicability.UNSAFE)
        self.report(
            node,
            f"`{self.code.text_of(node)}` is a copy: what is written into its groups never comes to `{self.code.text_of(optimizer)}`",
            repair=repair,
        )

    def _optimizer(self, node: cst.Subscript) -> cst.BaseExpression | None:
        """The optimizer of `opt.state_dict()["param_groups"]`, or of a name's that is used for such items alone."""
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(index, cst.Index) or self.names.constant(index.value) != _GROUPS:
            return None
        value: cst.BaseExpression | None = node.value
        if isinstance(value, cst.Name):
            bound = self.names.bindings.lookup(value)
            if len(bound) != 1 or bound[0].kind is not Kind.ASSIGN or bound[0].path:
                return None
            if not all(map(self._stays_inside, self._uses(bound[0]))):
                return None
            value = bound[0].value
        func = value.func if isinstance(value, cst.Call) and not value.args else None
        if not isinstance(func, cst.Attribute) or func.attr.value != "state_dict" or not self.names.key(func.value):
            return None
        origins = self.values.origins(func.value)
        known = not origins or all(self.classes.name_is_a(each.name, "torch.optim.Optimizer") for each in origins)
        return func.value if known else None

    def _uses(self, binding: Binding) -> list[cst.Name]:
        """Where a name is read, in the scope that binds it and those inside."""
        return [
            each
            for each in self.tree.within(binding.scope, cst.Name)
            if each.value == binding.name
            and not self.names.is_word(each)
            and each is not binding.site
            and self.names.bindings.lookup(each) == [binding]
        ]

    def _is_item(self, value: cst.CSTNode) -> bool:
        """Whether of a value only an item is taken, or a method of dicts called that gives no part away."""
        above = self.tree.parent(value)
        if isinstance(above, cst.Subscript):
            return above.value is value
        return isinstance(above, cst.Attribute) and above.attr.value in {"update", "get", "keys"}

    def _stays_inside(self, state: cst.CSTNode) -> bool:
        """Whether of a state dict nothing is taken but what its groups hold: no group, and not all of them."""
        top, depth = state, 0
        while isinstance(above := self.tree.parent(top), cst.Subscript) and above.value is top:
            top, depth = above, depth + 1
        return depth > 2 or (isinstance(above, (cst.For, *_STORES)) and depth > 0)

    def _changes(self, value: cst.CSTNode) -> bool:
        """Whether an item of a dict is set: `group["lr"] = 0.1`, `group.update(lr=0.1)`."""
        above = self.tree.parent(value)
        if isinstance(above, cst.Attribute) and above.value is value:
            return above.attr.value == "update" and isinstance(self.tree.parent(above), cst.Call)
        set_ = self.tree.parent(above) if isinstance(above, cst.Subscript) and above.value is value else None
        return isinstance(set_, _STORES) and getattr(set_, "target", None) is above

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """What is written into groups of a state that no optimizer gets back."""
        for path in entry.paths:
            kept = [event.state for event in path.of(StateLoaded)] + [event.value for event in path.of(Appended)]
            kept += [event.value for event in path.of(Written) if event.value is not None]
            kept += [path.machine.given_back] if path.machine.given_back is not None else []
            for event in path.of(CopySet):
                if not event.group.escaped and not any(is_held(each, event.group) for each in kept):
                    message = "the groups of `state_dict()` are copies: what is written into them never comes to the optimizer"
                    yield Fault.at(event, message)
