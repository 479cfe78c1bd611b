from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check
from lightlint.facts.names import UNKNOWN

_PER_EPOCH = {
    "on_train_epoch_start", "on_train_epoch_end", "on_validation_epoch_end", "on_validation_end", "training_epoch_end",
    "validation_epoch_end", "on_epoch_start", "on_epoch_end",
}  # fmt: skip
_SHARED = {"Value", "Array", "share_memory_", "RawValue", "RawArray", "Manager"}


class PersistentWorkersStaleDataset(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if call not in self.facts.datasets.loaders or not self.facts.workers.persist(call) or self._is_made_anew():
            return
        dataset = self.facts.loading.dataset(call)
        nodes = [self.classes.local(each.name) for each in self.values.origins(dataset)]
        if not nodes:
            return
        for place, attribute in self._changes(call, dataset):
            if all(node is not None and self._is_read(node, attribute) for node in nodes):
                self.report(
                    place,
                    f"the workers keep the `{attribute}` they started with: `persistent_workers` copies the data set once",
                )

    def _is_made_anew(self) -> bool:
        """Whether a Trainer of the file asks for new loaders every so often, or the file for new workers."""
        words = (name.value for name in self.tree.all(cst.Name))
        return any(word.startswith("reload_dataloaders_every") or word == "_iterator" for word in words)

    def _changes(self, loader: cst.Call, dataset: cst.BaseExpression | None) -> Iterator[tuple[cst.CSTNode, str]]:
        """Where an attribute of the loader's data set is set anew in every epoch, by name or through a method of its class."""
        views = list(self._views(loader, dataset))
        for target in self.tree.all(cst.AssignTarget, cst.AugAssign):
            place = target.target
            if isinstance(place, cst.Attribute) and self._moves(target) and self._is_of(place.value, loader, views):
                yield place, place.attr.value
        for call in self.tree.all(cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and self._is_of(func.value, loader, views):
                yield from ((call, each) for each in self._set_by(func, dataset))

    def _views(self, loader: cst.Call, dataset: cst.BaseExpression | None) -> Iterator[tuple[str, cst.Call]]:
        """What the data set is called, with the call that makes the loader there: of DataLoader, or of a helper."""
        yield self.names.key(dataset), loader
        function = self.tree.function(loader)
        if function is not None and isinstance(dataset, cst.Name):
            for call in self.hooks.calls_of.get(function, ()):
                yield self.names.key(self.values.given(function, call, dataset.value)), call

    def _is_of(self, holder: cst.BaseExpression, loader: cst.Call, views: list[tuple[str, cst.Call]]) -> bool:
        """Whether an expression is the data set of a loader whose workers run by then, written in code that every epoch runs."""
        key, loops = self.names.key(holder), self.tree.loops(holder)
        if not key:
            return False
        of_loader = isinstance(holder, cst.Attribute) and holder.attr.value == "dataset"
        if of_loader and isinstance(holder, cst.Attribute) and isinstance(holder.value, cst.Name):
            found = self.names.bindings.lookup(holder.value)
            outside = [loop for loop in loops if not any(self.tree.contains(loop, each.site) for each in found)]
            made = {origin.call for origin in self.values.origins(holder.value)}
            return made == {loader} and any(self._draws(loop, loader) for loop in outside)
        if key.startswith("self.") and {hook.name for hook in self.hooks.around(holder)} & _PER_EPOCH:
            return key == views[0][0] and self.tree.enclosing_class(holder) is self.tree.enclosing_class(loader)
        if key.startswith("self.") and self._is_held(holder, loader):
            return any(self._runs(loop, loader) for loop in self.facts.steps.around(holder))
        return any(
            key == name and self.tree.owner(holder) is self.tree.owner(made) and not self.tree.contains(loop, made)
            for name, made in views
            for loop in loops
            if self._draws(loop, loader)
        )

    def _is_held(self, holder: cst.BaseExpression, loader: cst.Call) -> bool:
        """Whether an attribute of `self` is the data set of a loader, as itself or as `self.loader.dataset`."""
        inside = holder.value if isinstance(holder, cst.Attribute) and holder.attr.value == "dataset" else None
        if {origin.call for origin in self.values.origins(inside)} == {loader}:
            return True
        own, given = self.values.origins(holder), self.values.origins(self.facts.loading.dataset(loader))
        made = own[0].call if len(own) == 1 and own == given else None
        if made is None or self.tree.loops(made):
            return False
        function = self.tree.function(made)  # it may make several things, but for the attributes of an object
        calls = self.facts.steps.calls_of.get(function, ()) if function is not None else ()
        return function is None or function.name.value == "__init__" or len(calls) < 2

    def _runs(self, loop: cst.For | cst.While, loader: cst.Call) -> bool:
        """Whether each round of a loop iterates the loader, also in functions it calls, none of which makes it anew."""
        bodies = self.facts.steps.bodies(loop.body)
        drawn = [self.values.iterated(each.iter) for body in bodies for each in self.tree.own(body, cst.For)]
        anew = any(self.tree.contains(body, loader) for body in bodies)
        return not anew and any({each.call for each in self.values.origins(one)} == {loader} for one in drawn)

    def _draws(self, loop: cst.CSTNode, loader: cst.Call) -> bool:
        """Whether a loop iterates the loader, or gives it to a function that may, in each round."""
        if not isinstance(loop, (cst.For, cst.While)):
            return False
        inner = [each.iter for each in self.tree.own(loop.body, cst.For)]
        given = [arg.value for call in self.tree.own(loop.body, cst.Call) for arg in call.args]
        return any(
            origin.call is loader
            for each in [*(self.values.iterated(one) for one in inner), *given]
            for origin in self.values.origins(each)
        )

    def _set_by(self, func: cst.Attribute, dataset: cst.BaseExpression | None) -> list[str]:
        """The attributes that a method of the data set's class sets on itself."""
        origin = self.values.constructor(dataset)
        node = self.classes.local(origin.name) if origin is not None else None
        method = self.classes.method(node, func.attr.value) if node is not None else None
        return [
            target.target.attr.value
            for function in (self.hooks.reachable(method) if method is not None else [])
            for target in self.tree.own(function, cst.AssignTarget)
            if isinstance(target.target, cst.Attribute) and self.classes.is_self(target.target.value)
            if self._moves(target) or self.facts.conditions(func)
        ]

    def _moves(self, target: cst.AssignTarget | cst.AugAssign) -> bool:
        """Whether an assignment may give another value in another round: no constant, or not in every one."""
        assign = self.tree.parent(target)
        constant = self.names.constant(assign.value) if isinstance(assign, cst.Assign) else UNKNOWN
        return constant is UNKNOWN or bool(self.facts.conditions(target.target))

    def _is_read(self, node: cst.ClassDef, attribute: str) -> bool:
        """Whether samples depend on the attribute, and it is a plain one: no property, nothing in shared memory."""
        if self.classes.has_method(node, attribute) or any(
            each.value in _SHARED for each in self.tree.within(node, cst.Name)
        ):
            return False
        reads = self.facts.datasets.read_in(node)
        return any(
            each.attr.value == attribute and self.classes.is_self(each.value) and self.tree.function(each) in reads
            for each in self.tree.within(node, cst.Attribute)
        )
