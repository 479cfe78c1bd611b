from __future__ import annotations

from collections import defaultdict

import libcst as cst

from lightlint.check import Check

_STEPS = ("training_step", "validation_step")


class SameKeyTrainAndVal(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        calls: dict[str, dict[str, cst.Call]] = defaultdict(dict)
        for call in self.tree.within(node, cst.Call):
            if self.tree.enclosing_class(call) is not node or not self.facts.logs.is_log(call):
                continue
            keys = self.facts.logs.keys(call)
            for hook in self.facts.logs.sure_hooks(call):
                for key in keys if keys and (len(keys) == 1 or self.names.method(call) == "log_dict") else ():
                    calls[key].setdefault(hook.name, call)
        for key, places in calls.items():
            if all(step in places for step in _STEPS) and not self._is_by_stage(places):
                message = (
                    f"`{key}` is logged in `training_step` too: what callbacks see under it is the value that came last"
                )
                self.report(places["validation_step"], message)

    def _is_by_stage(self, places: dict[str, cst.Call]) -> bool:
        """Whether a key of a dict is put together from the stage."""
        return any(self.tree.within(call, cst.FormattedString) for call in places.values())
