from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault
from lightlint.engine.events import Forward, ModeSet
from lightlint.facts.classes import NN_MODULE
from lightlint.models.kinds import BY_MODE
from lightlint.values.core import Class, Library
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_NORM = re.compile(r"torch\.nn\.(?:modules\.batchnorm\.)?(?:Sync|_)?BatchNorm\w*$")
_NORMS = "<batch norms>"  # the part of a module that a loop over its batch norms puts in eval mode


class EvalUndoneByTrain(Check):
    def visit_Call(self, call: cst.Call) -> None:
        for made, part in self._parts_in_eval(call):
            root = part.partition(".")[0]
            if (
                part == root
                or root in {"self", "cls"}
                or not self._is_plain(call, root)
                or self._is_repeated(made, part)
            ):
                continue
            for later in self._later(call):
                whole = self._trained(later)
                if whole and part.startswith(f"{whole}."):
                    self.report(
                        made, f"undone before it is used: `{whole}.train()` puts all of `{whole}` in training mode"
                    )
                    break
                if self._may_use(later, part.removesuffix(f".{_NORMS}"), root):
                    break

    def _parts_in_eval(self, call: cst.Call) -> Iterator[tuple[cst.Call, str]]:
        """The parts of a module that a call puts in eval mode, itself or as a method of the whole, and where."""
        if self.facts.modes.is_eval(call):
            yield call, self._part(call)
            return
        yield from self.facts.modes.setting.of_new(call)
        callee = self.facts.steps.callee(call)
        if callee is None or self.tree.class_of(callee) is None or not isinstance(call.func, cst.Attribute):
            return
        method = self.names.method(call)
        if any(self.names.method(each) == method and each is not call for each in self.tree.all(cst.Call)):
            return
        whole = self.names.key(call.func.value)
        for each in self.tree.own(callee.body, cst.Call):
            part = self._part(each) if self.facts.modes.is_eval(each) else ""
            if whole and part.startswith("self."):
                yield each, whole + part.removeprefix("self")

    def _part(self, call: cst.Call) -> str:
        """The key of what `x.eval()` changes; for a loop over the batch norms of a module, that of these."""
        key = self.names.key(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        loop = next(iter(self.tree.loops(call)), None)
        if not isinstance(loop, cst.For):
            return key
        walk = loop.iter
        if self.names.key(loop.target) != key or self.names.method(walk) != "modules" or not isinstance(walk, cst.Call):
            return ""
        asked = [
            name for test, _ in self.facts.conditions(call) for name in self.tree.within(test, cst.Name, cst.Attribute)
        ]
        is_norm = any(_NORM.match(self.names.of(name) or "") for name in asked)
        return f"{self.names.key(walk.func.value)}.{_NORMS}" if is_norm and isinstance(walk.func, cst.Attribute) else ""

    def _later(self, call: cst.Call) -> list[cst.Call]:
        """The calls that a function makes behind one; none where a loop comes back to that one."""
        owner = self.tree.owner(call)
        around = self.tree.loops(call)
        if len(around) > self._part(call).endswith(_NORMS):
            return []
        skip = around[0] if around else call
        calls = self.tree.own(owner.body if isinstance(owner, cst.FunctionDef) else owner, cst.Call)
        return [
            each
            for each in calls
            if self.tree.order(each) > self.tree.order(call) and not self.tree.contains(skip, each)
        ]

    def _trained(self, call: cst.Call) -> str:
        """The module that a call puts in training mode as a whole, itself or at the start of a helper of the file."""
        if self.facts.conditions(call):
            return ""
        if self.names.method(call) == "train" and isinstance(call.func, cst.Attribute):
            mode = self.names.constant(call.args[0].value) if call.args else True
            return self.names.key(call.func.value) if mode is True else ""
        callee = self.facts.steps.callee(call)
        first = next(iter(self.tree.own(callee.body, cst.Call)), None) if callee is not None else None
        if callee is None or first is None or self.names.method(first) != "train":
            return ""
        given = self.facts.values.given(callee, call, self._trained(first))
        return self.names.key(given) if given is not None else ""

    def _may_use(self, call: cst.Call, part: str, root: str) -> bool:
        """Whether a call may run the module, or hands it to what may."""
        if self.names.key(call.func).removesuffix(".forward") in {part, root}:
            return True
        handed = any(self.names.key(arg.value) in {part, root} for arg in call.args)
        return handed and not (self.names.call(call) or "").startswith("torch.")

    def _is_repeated(self, made: cst.Call, part: str) -> bool:
        """Whether the file puts the same in eval mode elsewhere, too, perhaps behind each `train()`."""
        parts = part.split(".")[1:]
        for call in self.tree.all(cst.Call):
            if call is made or not self.facts.modes.is_eval(call) or not isinstance(call.func, cst.Attribute):
                continue
            key = self.names.key(call.func.value)
            of_some = _NORMS in parts and self.tree.loops(call) and self._part(call) != key
            if not key or of_some or key.rpartition(".")[2] in parts:
                return True
        return False

    def _is_plain(self, call: cst.Call, root: str) -> bool:
        """Whether the whole is of a class whose `train` is that of torch."""
        bound = self.names.bindings.lookup_in(root, self.tree.scope(call))
        kinds = [origin.name for each in bound for origin in self.facts.values.unwrapped(each.value)]
        return bool(kinds) and all(map(self._trains_plainly, kinds))

    def _trains_plainly(self, kind: str) -> bool:
        node = self.classes.local(kind)
        if node is None:
            return kind.startswith(("torch.nn.", "torchvision.models."))
        return (
            self.classes.is_a(node, NN_MODULE)
            and self.classes.complete(node)
            and not self.classes.has_method(node, "train")
        )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Parts that are put in eval mode, and in training mode with their whole before anything runs them."""
        for path in entry.paths:
            modes, runs = path.of(ModeSet), path.of(Forward)
            for made in modes:
                part = made.module
                if made.training or made.where.conditions or part.escaped or not _has_layers_with_modes(part):
                    continue
                later = [each for each in modes if each.time > made.time and part in each.module.modules()]
                undone = next((each for each in later if each.training), None)
                again = any(not each.training for each in later) or undone is None or undone.module is part
                if again or undone is None or undone.where.conditions or _sets_modes(undone.module):
                    continue
                used = [run for run in runs if run.time > made.time and _runs(run, part)]
                if used and used[0].time > undone.time and any(run.training for run in used):
                    message = "undone before it is used: `train()` puts the whole module in training mode"
                    yield Fault.at(made, message)


def _has_layers_with_modes(module: Module) -> bool:
    return any(isinstance(each.cls, Library) and BY_MODE.search(each.name) for each in module.modules())


def _sets_modes(module: Module) -> bool:
    """Whether a class of the program sets modes in a way of its own."""
    return any(isinstance(each.cls, Class) and each.cls.find("train") is not None for each in module.modules())


def _runs(run: Forward, part: Module) -> bool:
    return part in run.module.modules() or run.module in part.modules()
