from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.annotations import annotated
from lightlint.facts.classes import MODULE, NN_MODULE
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_argument

_SMALL = re.compile(r"loss|criteri|metric|activation|^act", re.IGNORECASE)


class SaveHyperparametersModule(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "save_hyperparameters":
            return
        function, node = self.tree.function(call), self.tree.enclosing_class(call)
        if not self.classes.is_self(func.value) or function is None or function.name.value != "__init__":
            return
        if not self.classes.is_a(node, MODULE) or self._is_filtered():
            return
        ignored = self._ignored(call)
        modules = [name for name in self._modules(function, call) if ignored is not None and name not in ignored]
        large = [name for name in modules if not _SMALL.search(name)]
        if large:
            what = f"`{large[0]}` is a module" if len(large) == 1 else f"{_listed(large)} are modules"
            self.report(
                call,
                f"{what}: each checkpoint holds the weights twice, and does not load with `weights_only=True`",
                repair=Repair(
                    "leave modules out of the hyperparameters", self._draft(call, modules), Applicability.UNSAFE
                ),
            )

    def _ignored(self, call: cst.Call) -> set[object] | None:
        """The names left out; None where the call names what it saves, or leaves out what is not in sight."""
        found: set[object] = set()
        for arg in call.args:
            keyword = arg.keyword.value if arg.keyword is not None else ""
            if keyword == "logger":
                continue
            value = self.names.constant(arg.value)
            if keyword != "ignore" or not isinstance(value, (str, list)):
                return None
            found |= {value} if isinstance(value, str) else set(value)
        return found

    def _is_filtered(self) -> bool:
        """Whether code takes entries out of `hparams` later."""
        calls = self.tree.all(cst.Call)
        popped = any(self.names.method(each) == "pop" and self._is_of_hparams(each.func) for each in calls)
        return popped or any(map(self._is_of_hparams, self.tree.all(cst.Del)))

    def _is_of_hparams(self, node: cst.CSTNode) -> bool:
        return any("hparams" in each.value for each in self.tree.within(node, cst.Name, cst.SimpleString))

    def _modules(self, function: cst.FunctionDef, call: cst.Call) -> Iterator[str]:
        """The parameters that surely are modules when the call runs."""
        for param in (*function.params.params[1:], *function.params.kwonly_params):
            bound = self.names.bindings.lookup_in(param.name.value, function)
            rebound = [each for each in bound if each.site is not param]
            if any(self.tree.order(each.site) < self.tree.order(call) for each in rebound):
                continue
            annotation = param.annotation.annotation if param.annotation is not None else None
            name = annotated(self.names, annotation, self.tree.scope(annotation)) if annotation is not None else None
            given = self._uses(function, param.name.value) if annotation is None else []
            if self.classes.name_is_a(name, NN_MODULE) or any(map(self.values.is_module, given)):
                yield param.name.value

    def _uses(self, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
        assigns = self.tree.own(function.body, cst.Assign)
        return [each.value for each in assigns if isinstance(each.value, cst.Name) and each.value.value == name]

    def _draft(self, call: cst.Call, modules: list[str]) -> Draft | None:
        if any(arg.keyword is not None and arg.keyword.value == "ignore" for arg in call.args):
            return None
        return insert_argument(self.code, call, "ignore=[" + ", ".join(f'"{each}"' for each in modules) + "]")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
