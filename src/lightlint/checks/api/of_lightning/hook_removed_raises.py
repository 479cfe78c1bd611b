from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.code.bindings import Kind
from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.lightning.overrides import owner_of, owner_of_name
from lightlint.facts.project.mentions import is_called
from lightlint.facts.releases.api import lightning_api
from lightlint.facts.releases.compat import is_versioned, removal_tier
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after, insert_before, join, remove_parameter, rename, replace

_REFUSED = {
    "training_epoch_end": "`fit` refuses",
    "validation_epoch_end": "`fit` and `validate` refuse",
    "test_epoch_end": "`test` refuses",
}
_PARTIAL = {"functools.partial", "functools.partialmethod"}


class HookRemovedRaises(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        if function.name.value in _REFUSED and owner_of(self.facts, function) is Owner.MODULE:
            self._judge(function, function.name)

    def visit_AssignTarget(self, target: cst.AssignTarget) -> None:
        """A hook that the body of a class assigns: `validation_epoch_end = _end`."""
        name, assign = target.target, self.tree.parent(target)
        if not isinstance(name, cst.Name) or name.value not in _REFUSED or not isinstance(assign, cst.Assign):
            return
        owner = owner_of_name(self.facts, self.tree.class_of(assign), name.value)
        if owner is Owner.MODULE and self._is_callable(assign.value):
            self._judge(assign, name)

    def _is_callable(self, value: cst.BaseExpression) -> bool:
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            return bool(found) and all(each.kind is Kind.FUNCTION for each in found)
        return isinstance(value, cst.Lambda) or self.names.call(value) in _PARTIAL

    def _judge(self, node: cst.FunctionDef | cst.Assign, word: cst.Name) -> None:
        name = word.value
        tier = removal_tier(self.facts.lightning, lightning_api().lightning_module.removed[name].removed)
        if tier is None or is_versioned(self.facts, node):
            return
        target = self.facts.lightning.version.minor
        message = f"{_REFUSED[name]} a module that has `{name}` since Lightning 2.0 (target: {target})"
        self.report(word, message, tier=tier, repair=self._repair(node) if isinstance(node, cst.FunctionDef) else None)

    def _repair(self, hook: cst.FunctionDef) -> Repair | None:
        """Collect what the step returns in an attribute, where step, hook and `__init__` are as plain as in 1.x manuals."""
        stage = hook.name.value.removesuffix("_epoch_end")
        node = self.tree.class_of(hook)
        methods = self.classes.methods(node) if node is not None else {}
        step, init = methods.get(f"{stage}_step"), methods.get("__init__")
        outputs = hook.params.params[1] if len(hook.params.params) == 2 and not hook.decorators else None
        attribute = f"{stage}_step_outputs"
        taken = any(each.value == attribute for each in self.tree.all(cst.Name))
        if stage == "training" or not (step and init and outputs) or taken or self.tree.own(hook, cst.Return):
            return None
        if is_called(self.facts.project, self.facts.source, hook.name.value):
            return None
        uses = [each for each in self.tree.within(hook.body, cst.Name) if each.value == outputs.name.value]
        last = hook.body.body[-1]
        begin = self._initialised(init)
        bound = self.names.bindings.by_scope.get(hook, {}).get(outputs.name.value, [])
        if (
            begin is None
            or len(bound) != 1
            or not isinstance(last, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        ):
            return None
        draft = join(
            rename(self.code, hook.name, f"on_{stage}_epoch_end"),
            remove_parameter(self.code, hook, outputs),
            *(replace(self.code, use, f"self.{attribute}") for use in uses),
            insert_after(self.code, last, f"self.{attribute}.clear()"),
            insert_after(self.code, begin, f"self.{attribute} = []"),
            self._collected(step, attribute),
        )
        return Repair(f"collect the outputs in `self.{attribute}`", draft, Applicability.UNSAFE)

    def _initialised(self, init: cst.FunctionDef) -> cst.SimpleStatementLine | None:
        """The line of `super().__init__()`."""
        for line in init.body.body:
            if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Expr):
                call = line.body[0].value
                func = call.func if isinstance(call, cst.Call) else None
                if isinstance(func, cst.Attribute) and self.names.call(func.value) == "builtins.super":
                    return line
        return None

    def _collected(self, step: cst.FunctionDef, attribute: str) -> Draft | None:
        """Append what each `return` of a step gives."""
        drafts: list[Draft | None] = []
        for each in self.tree.own(step, cst.Return):
            value, line = each.value, self.tree.parent(each)
            if value is None or not isinstance(line, cst.SimpleStatementLine):
                return None
            text = self.code.text_of(value)
            if isinstance(value, cst.Name):
                drafts.append(insert_before(self.code, line, f"self.{attribute}.append({text})"))
            elif "\n" in text or any(name.value == "outputs" for name in self.tree.within(step, cst.Name)):
                return None
            else:
                before = f"outputs = {text}\nself.{attribute}.append(outputs)"
                drafts += [insert_before(self.code, line, before), replace(self.code, value, "outputs")]
        return join(*drafts) if drafts else None
