from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.lightning.hook_calls import passed, passed_since
from lightlint.facts.lightning.hooks import STEPS, Owner
from lightlint.facts.lightning.overrides import class_api, is_changed, is_stub, taken
from lightlint.facts.lightning.spelling import BEFORE_1_0, close_hook
from lightlint.facts.objects.decorations import rewrapped
from lightlint.facts.project.mentions import is_mentioned, is_mentioned_elsewhere
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, join, rename
from lightlint.fixes.repairs.hook_parameters import without_missing

_KNOWN_SINCE = "1.0"  # before, hooks had other names, such as `validation_end`
_OPTIONAL = {Owner.MODULE: {"forward", "state_dict", "load_state_dict"}}  # torch's own, not only Lightning's
# hooks at the end of an epoch, and what 1.x had beside them for methods that take `outputs`
_OF_OUTPUTS = {
    "on_train_epoch_end": "training_epoch_end",
    "on_validation_epoch_end": "validation_epoch_end",
    "on_test_epoch_end": "test_epoch_end",
}
_WITH_OUTPUTS = "lightning>=1.0"


class HookUnknownName(Check):
    def visit_FunctionDef(self, function: cst.FunctionDef) -> None:
        name = function.name.value
        node = self.tree.class_of(function)
        owner = self.hooks.owner(node) if node is not None and "_" in name and not name.startswith("_") else None
        if node is None or owner is None or is_changed(self.facts, function) or is_stub(function):
            return
        if not self.facts.lightning.may_be_at_least(_KNOWN_SINCE):
            return
        api = class_api(owner)
        version = self.facts.lightning.version
        hooks = frozenset(
            each for each in api.signatures.keys() - api.removed.keys() if api.signature(each, version) is not None
        ) - _OPTIONAL.get(owner, set())
        if name in api.signatures or name in api.removed or name in api.added:
            return
        if name in BEFORE_1_0 and not self.facts.lightning.surely_at_least(Version("1.0")):
            return
        hook = close_hook(name, hooks)
        if hook is None or not self.classes.complete(node) or self.classes.has_method(node, hook):
            return
        if self._is_mentioned(function) or self._picks_by_name(node):
            return
        hook = self._with_outputs(function, owner, hook)
        draft = self._renamed(function, owner, hook)
        writes = f"lightning>={passed_since(owner, hook, self.facts.lightning.version)}"
        writes = _WITH_OUTPUTS if hook in _OF_OUTPUTS.values() else writes
        repair = Repair(f"rename to `{hook}`", draft, Applicability.UNSAFE, writes=writes)
        self.report(function.name, f"nothing calls `{name}`, the hook is `{hook}`", repair=repair)

    def _is_mentioned(self, function: cst.FunctionDef) -> bool:
        """Whether some code names a method, other than to put a decorator's result in its place."""
        name, project, source = function.name.value, self.facts.project, self.facts.source
        wrapping = rewrapped(self.tree, function)
        if not wrapping:
            return is_mentioned(project, source, name)
        own = [each for each in self.tree.all(cst.Name) if each.value == name and each is not function.name]
        quoted = [each for each in self.tree.all(cst.SimpleString) if name in each.value]
        return bool(quoted) or len(own) > 2 * len(wrapping) or is_mentioned_elsewhere(project, source, name)

    def _with_outputs(self, function: cst.FunctionDef, owner: Owner, hook: str) -> str:
        """The hook that a release before 2.0 has for a method that takes what the steps returned."""
        takes = taken(self.facts, function)
        wants = takes is not None and len(takes.positional) == 1 and owner is Owner.MODULE
        old = not self.facts.lightning.may_be_at_least("2.0")
        return _OF_OUTPUTS.get(hook, hook) if wants and old else hook

    def _renamed(self, function: cst.FunctionDef, owner: Owner, hook: str) -> Draft | None:
        """The hook's name, and no parameters that Lightning passes nothing for; None where the body needs them."""
        takes = taken(self.facts, function)
        call = passed(owner, hook, self.facts.lightning.version)
        if takes is None:
            return None
        new_name = rename(self.code, function.name, hook)
        if hook in _OF_OUTPUTS.values():
            return new_name
        if call is None:  # nothing is known of what is passed, which matters not to one that takes nothing
            return new_name if hook in STEPS or not takes.positional else None
        if call.refused(takes) or call.shifted(takes):
            return None
        return join(new_name, without_missing(self.facts, function, takes, call, call.missing(takes)))

    def _picks_by_name(self, node: cst.ClassDef) -> bool:
        """Whether the class, or a function outside of classes, looks methods up under names made at run time, as in
        `getattr(self, f"{stage}_step")`."""
        calls = [call for call in self.tree.all(cst.Call) if self.names.call(call) == "builtins.getattr"]
        calls = [call for call in calls if self.tree.enclosing_class(call) in (node, None)]
        return any(len(call.args) > 1 and not isinstance(call.args[1].value, cst.SimpleString) for call in calls)
