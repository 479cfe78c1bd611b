from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from lightlint.check import Check

_TORCH, _SKLEARN = "torch.utils.data.random_split", "sklearn.model_selection.train_test_split"
_SEEDS = {_TORCH: ("generator", 2), _SKLEARN: ("random_state", None)}
_SEEDING = {"manual_seed", "seed_everything", "seed", "set_seed", "seed_all", "fork_rng", "set_rng_state"}


@dataclass(frozen=True, slots=True)
class _Split:
    """A split of which one part is taken and the rest thrown away."""

    call: cst.Call
    name: str
    taken: frozenset[int]
    parts: int


class SplitDrawnTwice(Check):
    def visit_Module(self, node: cst.Module) -> None:
        calls = [call for call in self.tree.all(cst.Call) if self.names.call(call) in _SEEDS]
        found = [split for call in calls if (split := self._split(call)) is not None]
        for number, second in enumerate(found):
            first = next((each for each in found[:number] if self._is_same_again(each, second)), None)
            if first is not None:
                self.report(
                    second.call,
                    f"`{second.name.rpartition('.')[2]}` draws anew: this part shares samples with the one that was taken before",
                )

    def _split(self, call: cst.Call) -> _Split | None:
        """A split without a seed of its own, with the parts that are taken of it."""
        name = self.names.call(call) or ""
        keyword, position = _SEEDS[name]
        shuffle = self.names.argument(call, "shuffle")
        if self.names.has_star(call) or self.names.argument(call, keyword, position) is not None or shuffle is not None:
            return None
        owner = self.tree.owner(call)
        if any(self.names.method(each) in _SEEDING for each in self.tree.own(owner, cst.Call)):
            return None
        parent = self.tree.parent(call)
        if isinstance(parent, cst.Subscript) and parent.value is call and len(parent.slice) == 1:
            index = parent.slice[0].slice
            at = self.names.constant(index.value) if isinstance(index, cst.Index) else None
            return _Split(call, name, frozenset([at]), 0) if isinstance(at, int) and at >= 0 else None
        if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
            return None
        target = parent.targets[0].target
        if not isinstance(target, cst.Tuple | cst.List):
            return None
        taken = frozenset(at for at, each in enumerate(target.elements) if not self._is_dropped(each.value, owner))
        return _Split(call, name, taken, len(target.elements)) if 0 < len(taken) < len(target.elements) else None

    def _is_dropped(self, target: cst.BaseExpression, owner: cst.FunctionDef | cst.Module) -> bool:
        """Whether nothing reads what a part of a split is called."""
        if not isinstance(target, cst.Name) or isinstance(owner, cst.Module):
            return isinstance(target, cst.Name) and target.value.startswith("_")
        same = [name for name in self.tree.within(owner, cst.Name) if name.value == target.value]
        return target.value.startswith("_") or len(same) == 1

    def _is_same_again(self, first: _Split, second: _Split) -> bool:
        """Whether two splits are of the same data in the same way, and other parts are taken of them."""
        near = self.tree.class_of(self.tree.owner(first.call)) is self.tree.class_of(self.tree.owner(second.call))
        if not near or first.name != second.name or first.taken & second.taken or 0 < first.parts != second.parts:
            return False
        inputs = [each.call.args[: 1 if first.name == _TORCH else None] for each in (first, second)]
        return [self._data(arg) for arg in inputs[0]] == [self._data(arg) for arg in inputs[1]]

    def _data(self, arg: cst.Arg) -> tuple[str, ...]:
        """What is split, as it is spelled; a data set that is made anew from the same files is the same."""
        value: cst.CSTNode = arg.value
        if isinstance(value, cst.Name):
            bound = self.names.bindings.lookup(value)
            made = bound[0].value if len(bound) == 1 and not bound[0].path else None
            value = (
                made if isinstance(made, cst.Call) and isinstance(self.tree.function(value), cst.FunctionDef) else value
            )
        if isinstance(value, cst.Call):
            first = value.args[:1]
            return (self.names.call(value) or "", *(word for each in first for word in self._words(each.value)))
        return tuple(self._words(value))

    def _words(self, node: cst.CSTNode) -> list[str]:
        return [each.value for each in self.tree.within(node, cst.Name, cst.SimpleString)]
