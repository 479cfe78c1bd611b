from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.hooks import TRAINING_STEP, Hook
from lightlint.facts.tree import Loop

_WAITING = {"item", "cpu", "tolist", "numpy", "__float__"}
_CUTTING = {"detach", "clone"}
_CONVERTING = {"builtins.float", "builtins.int", "builtins.print"}
_ASKING = {*_WAITING, "to", *(name.removeprefix("builtins.") for name in _CONVERTING)}  # the quick question first


class SyncInBatchLoop(Check):
    def visit_Module(self, _module: cst.Module) -> None:
        """One finding for each loop or hook: its first wait, for the next ones find the GPU's work done."""
        found: dict[tuple[Loop | Hook, cst.ClassDef | None], cst.Call] = {}
        losses = self._losses()
        for call in self.tree.all(cst.Call):
            asking = self.names.method(call) in _ASKING and self._names_one(call, losses)
            if asking and self._waits(call) and (place := self._place(call)) is not None:
                found.setdefault((place, self.tree.enclosing_class(call)), call)
        for (place, _), call in found.items():
            where = f"`{place.name}`" if isinstance(place, Hook) else "batch"
            waits = f"`{self.code.text_of(call)}` waits in each {where} until the GPU is done"
            self.report(call, f"{waits}: slow where this process loads the next batch, too")

    def _losses(self) -> set[str]:
        """The names of what backward passes start from: in sight, or Lightning's from what `training_step` returns."""
        parts: list[cst.CSTNode] = [call for call in self.tree.all(cst.Call) if self.loops.is_backward(call)]
        for function in self.tree.all(cst.FunctionDef):
            if function.name.value == TRAINING_STEP:
                parts += self.tree.own(function.body, cst.Return)
        return {name.value for part in parts for name in self.tree.within(part, cst.Name)}

    def _names_one(self, call: cst.Call, losses: set[str]) -> bool:
        return any(name.value in losses for name in self.tree.within(call, cst.Name))

    def _waits(self, call: cst.Call) -> bool:
        """Whether a call needs the value of a tensor that a backward pass starts from, and so what is computed before."""
        if self.names.call(call) in _CONVERTING:
            return any(self._is_loss(arg.value) for arg in call.args)
        if not isinstance(call.func, cst.Attribute) or self._is_inner(call):
            return False
        moves = call.func.attr.value == "to" and any(self.names.constant(arg.value) == "cpu" for arg in call.args)
        return (moves or call.func.attr.value in _WAITING) and self._is_loss(call.func.value)

    def _is_inner(self, call: cst.Call) -> bool:
        """Whether what waits here is itself made into a number: `float(loss.cpu())` is one wait."""
        above = self.tree.parent(call)
        return isinstance(above, cst.Attribute) and above.attr.value in _WAITING

    def _is_loss(self, value: cst.BaseExpression) -> bool:
        while True:
            match value:
                case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name))) if (
                    name in _CUTTING | _WAITING
                ):
                    value = inner
                case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                    value = inner
                case _:
                    return isinstance(value, cst.Name) and bool(self.facts.gradients.graphs(value))

    def _place(self, call: cst.Call) -> Loop | Hook | None:
        """The loop or hook that trains and comes to the call with each batch, where that is on a GPU."""
        place = self.loops.per_batch(call)
        if isinstance(place, Hook):
            return place if place.name == TRAINING_STEP and not self._is_on_cpu else None
        if place is None or not self._moves_to_gpu(place) or self.facts.gradients.may_be_off(call):
            return None
        return place if self.facts.steps.runs(place.body, self.loops.is_backward) else None

    @property
    def _is_on_cpu(self) -> bool:
        given = (self.names.argument(trainer, "accelerator") for trainer in self.facts.training.trainers)
        return any(each is not None and self.names.constant(each.value) == "cpu" for each in given)

    def _moves_to_gpu(self, place: Loop) -> bool:
        """Whether the function around moves something to a device, which is a GPU where there is one."""
        owner = self.tree.owner(place)
        moved = [call for call in self.tree.own(owner, cst.Call) if isinstance(call.func, cst.Attribute)]
        if any(self.names.method(call) == "cuda" for call in moved):
            return True
        texts = (self.names.constant(text) for text in self.tree.all(cst.SimpleString))
        speaks = any(isinstance(text, str) and text.partition(":")[0] == "cuda" for text in texts)
        return speaks and any(self.names.method(call) == "to" and self._is_device(call) for call in moved)

    def _is_device(self, call: cst.Call) -> bool:
        """Whether `.to(...)` by its first argument moves: a device by value or by name."""
        first = call.args[0].value if call.args else None
        spelled = self.names.constant(first)
        return (isinstance(spelled, str) and spelled != "cpu") or "device" in self.names.key(first).lower()
