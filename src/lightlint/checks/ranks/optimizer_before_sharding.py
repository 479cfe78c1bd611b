from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import unpacked
from lightlint.facts.sharded import SHARDERS, WRAPPER
from lightlint.facts.updates import Owner, body_of


class OptimizerBeforeSharding(Check):
    def visit_Call(self, call: cst.Call) -> None:
        model = self._sharded(call)
        if not model:
            return
        owner = self.tree.owner(call)
        for made, optimizer in self._optimizers(owner, model):
            if self._comes_before(made, call, model) and self._is_used_behind(call, made, optimizer):
                how = "`fully_shard`" if self.names.call(call) in SHARDERS else "FSDP"
                self.report(
                    made,
                    f"`{optimizer}` keeps the parameters that `{model}` had before {how} replaced them: no step changes the model",
                )

    def _sharded(self, call: cst.Call) -> str:
        """The model whose parameters a call surely replaces by shards; empty for any other call."""
        name = self.names.call(call)
        given = self.names.argument(call, "module", 0) if name == WRAPPER or name in SHARDERS else None
        if given is None or self.names.has_star(call):
            return ""
        kept = self.names.argument(call, "use_orig_params") if name == WRAPPER else None
        if kept is not None and self.names.constant(kept.value) is not False:
            return ""
        return self.names.key(given.value)

    def _optimizers(self, owner: Owner, model: str) -> list[tuple[cst.Call, str]]:
        """The optimizers that a function makes of a model's parameters, with the names it gives them."""
        found = []
        for assign in self.tree.own(body_of(owner), cst.Assign):
            made = assign.value
            key = self.names.key(assign.targets[0].target) if len(assign.targets) == 1 else ""
            if not key or not isinstance(made, cst.Call):
                continue
            if not self.classes.name_is_a(self.names.call(made), "torch.optim.Optimizer"):
                continue
            params = self.names.argument(made, "params", 0)
            drawn = self.facts.sharded.drawn_from(params.value) if params is not None else None
            if self.names.key(drawn) == model:
                found.append((made, key))
        return found

    def _comes_before(self, made: cst.Call, wrap: cst.Call, model: str) -> bool:
        """Whether a model is sharded behind an optimizer, with nothing that could make it another model in between."""
        owner = self.tree.owner(wrap)
        flow = self.facts.flow(owner)
        anew = [each for each in self._set(owner, model) if not self.tree.contains(each, wrap)]
        if not flow.reaches(made, [wrap], avoiding=anew):
            return False
        before = dict(self.facts.conditions(wrap))
        return all(before.get(test) is outcome for test, outcome in self.facts.conditions(made))

    def _is_used_behind(self, wrap: cst.Call, made: cst.Call, optimizer: str) -> bool:
        """Whether an optimizer may step behind the sharding: it steps, is returned, handed on or kept, and not made anew."""
        owner = self.tree.owner(wrap)
        flow = self.facts.flow(owner)
        again = [each for each in self._set(owner, optimizer) if each is not made]
        if flow.reaches(wrap, again) or self._is_mended(owner, optimizer):
            return False
        node = self.tree.enclosing_class(wrap)
        if optimizer.startswith("self.") and node is not None:  # another method may make it anew
            return len(self.classes.attribute_values(node, optimizer.partition(".")[2])) == 1
        return flow.reaches(
            wrap, [name for name in self.tree.own(body_of(owner), cst.Name) if self._uses(name, optimizer)]
        )

    def _is_mended(self, owner: Owner, optimizer: str) -> bool:
        """Whether a function tells an optimizer of other parameters."""
        reads = self.tree.own(body_of(owner), cst.Attribute)
        told = [each for each in reads if each.attr.value in {"param_groups", "add_param_group"}]
        return any(self.names.key(each.value) == optimizer for each in told)

    def _uses(self, name: cst.Name, optimizer: str) -> bool:
        above = self.tree.parent(name)
        if name.value != optimizer or isinstance(above, (cst.AssignTarget, cst.Del)):
            return False
        if isinstance(above, cst.Attribute):
            return above.value is name and above.attr.value == "step"
        return not (isinstance(above, cst.Arg) and above.keyword is name)

    def _set(self, owner: Owner, key: str) -> list[cst.BaseExpression]:
        """The values of a function's assignments to a name or attribute, also to several at once."""
        assigns = self.tree.own(body_of(owner), cst.Assign)
        return [
            each.value
            for each in assigns
            if any(
                self.names.key(leaf) == key
                for target in each.targets
                for leaf, _, _ in unpacked(target.target, each.value)
            )
        ]
