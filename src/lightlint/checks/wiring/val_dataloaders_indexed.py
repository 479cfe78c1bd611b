from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.bindings import dotted_name
from lightlint.facts.training import Run

# the attributes that are what the user gave, with the runs that set them: what they are given, else the hook that is asked
_GIVEN = {
    "val_dataloaders": {"fit": ("val_dataloaders", 2), "validate": ("dataloaders", 1)},
    "test_dataloaders": {"test": ("dataloaders", 1)},
    "predict_dataloaders": {"predict": ("dataloaders", 1)},
}
_HOOK = {"val_dataloaders": "val_dataloader", "test_dataloaders": "test_dataloader"}
_ASKING = {"isinstance", "hasattr", "version", "__version__", "type"}


class ValDataloadersIndexed(Check):
    def visit_Subscript(self, item: cst.Subscript) -> None:
        held = item.value
        if not isinstance(held, cst.Attribute) or held.attr.value not in _GIVEN or not self._is_number(item):
            return
        if not self.facts.lightning.surely_at_least("2.0") or not self._is_trainer(held.value) or self._is_asked(item):
            return
        attribute = held.attr.value
        runs = [each for each in self.facts.training.runs if each.entry in _GIVEN[attribute]]
        if runs and all(self._gets_one(each, attribute) for each in runs):
            text = self.code.text_of(held)
            self.report(item, f"`{text}` is the one `DataLoader` that `{runs[0].entry}` gets, no list: it raises")

    def stands(self) -> bool:
        return not self.facts.project.users(self.facts.path, "Trainer")  # others may give lists

    def _is_number(self, item: cst.Subscript) -> bool:
        index = item.slice[0].slice if len(item.slice) == 1 else None
        return isinstance(index, cst.Index) and type(self.names.constant(index.value)) is int

    def _is_trainer(self, value: cst.BaseExpression) -> bool:
        """Whether a value is the Trainer that a hook gets, or one made in this file."""
        around = self.hooks.owner(self.tree.enclosing_class(value))
        named = around is not None and dotted_name(value) in {"trainer", "self.trainer"}
        origin = None if named else self.values.constructor(value)
        return named or (origin is not None and origin.name == "lightning.Trainer")

    def _is_asked(self, item: cst.Subscript) -> bool:
        """Whether code around it asks what it has, or is ready for the error."""
        tests = [test for test, _ in self.facts.conditions(item)]
        above = list(self.tree.ancestors(item))
        tests += [each.test for each in above if isinstance(each, cst.IfExp)]
        words = {each.value for test in tests for each in self.tree.within(test, cst.Name)}
        tried = any(isinstance(each, cst.Try) for each in above)
        return tried or not words.isdisjoint(_ASKING | _GIVEN.keys())

    def _gets_one(self, run: Run, attribute: str) -> bool:
        """Whether a run surely gets one loader, not in a list: by its argument, or by the hook of what it runs."""
        if self.names.has_star(run.call):
            return False
        keyword, position = _GIVEN[attribute][run.entry]
        given = self.names.argument(run.call, keyword, position)
        if given is not None:
            return self.values.is_loader(given.value)
        if run.data_module is None and self.names.argument(run.call, "datamodule") is not None:
            return False
        if run.data_module is None and run.call.args[1:] and run.entry == "fit" and attribute != "val_dataloaders":
            return False
        node = self.classes.local(run.data_module or run.module)
        hook = self.classes.method(node, _HOOK.get(attribute, "")) if node is not None else None
        returns = self.values.returns(hook) if hook is not None else []
        return bool(returns) and all(each is not None and self.values.is_loader(each) for each in returns)
