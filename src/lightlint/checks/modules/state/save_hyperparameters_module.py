from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.objects.annotations import annotated
from lightlint.facts.objects.classes import MODULE, NN_MODULE, OPTIMIZER
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_argument, replace

_SMALL = re.compile(r"loss|criteri|metric|activation|^act", re.IGNORECASE)

_KINDS = {NN_MODULE: "module", OPTIMIZER: "optimizer"}
_TAKERS = ("torch.optim.", "builtins.")  # what takes an optimizer itself, as its schedules do


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
        kinds = {} if ignored is None else {n: k for n, k in self._objects(function, call) if n not in ignored}
        large = [name for name, kind in kinds.items() if kind != "module" or not _SMALL.search(name)]
        if large:
            of_kind = {kind: [name for name in large if kinds[name] == kind] for kind in map(kinds.__getitem__, large)}
            what = ", ".join(_said(kind, names) for kind, names in of_kind.items())
            self.report(
                call,
                f"{what}: pickled whole into each checkpoint, which then does not load with `weights_only=True`",
                repair=Repair(
                    f"leave {'modules' if 'module' in of_kind else 'them'} out of the hyperparameters",
                    self._draft(call, list(kinds)),
                    Applicability.UNSAFE,
                    "lightning>=1.3",
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
            if keyword != "ignore" or not isinstance(value, (str, list, tuple)):
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

    def _objects(self, function: cst.FunctionDef, call: cst.Call) -> Iterator[tuple[str, str]]:
        """The parameters that surely are modules, optimizers or schedulers when the call runs, and which of these."""
        for param in (*function.params.params[1:], *function.params.kwonly_params):
            name = param.name.value
            bound = self.names.bindings.lookup_in(name, function)
            rebound = [each for each in bound if each.site is not param]
            if any(self.tree.order(each.site) < self.tree.order(call) for each in rebound):
                continue
            annotation = param.annotation.annotation if param.annotation is not None else None
            promised = (
                annotated(self.names, annotation, self.tree.scope(annotation)) if annotation is not None else None
            )
            given = self._uses(function, name) if annotation is None else []
            kinds = {self._kind(each.name) for use in given for each in self.values.origins(use)}
            kind = self._kind(promised) if annotation is not None else kinds.pop() if len(kinds) == 1 else ""
            if kind == "module" and annotation is not None and self._makes_part(name, function):
                continue
            sure = kind == "module" or annotation is None
            if kind and (sure or not self._may_be_factory(name, function)):
                yield name, kind

    def _makes_part(self, name: str, init: cst.FunctionDef) -> bool:
        """Whether what is annotated as a module is the class or partial that makes it: `self.head = head(in_features=16)`."""
        for use in self.tree.own(init.body, cst.Name):
            call = self.tree.parent(use)
            if use.value != name or not isinstance(call, cst.Call) or call.func is not use:
                continue
            kept = self.tree.parent(call)
            if isinstance(kept, cst.Assign) and any(isinstance(each.target, cst.Attribute) for each in kept.targets):
                return True
            if call.args and all(each.keyword or isinstance(each.value, cst.BaseNumber) for each in call.args):
                return True  # sizes and options: a module itself is called with tensors
        return False

    def _kind(self, name: str | None) -> str:
        if name is not None and self.facts.configured.is_scheduler(name):
            return "scheduler"
        return next((kind for base, kind in _KINDS.items() if self.classes.name_is_a(name, base)), "")

    def _may_be_factory(self, name: str, init: cst.FunctionDef) -> bool:
        """Whether what is annotated as an optimizer is called, or given away, to make one: `self.hparams.optimizer(params)`."""
        node = self.tree.class_of(init)
        for use in self.tree.within(node, cst.Attribute, cst.Name) if node is not None else ():
            spelled = use.attr.value if isinstance(use, cst.Attribute) else use.value
            above = self.tree.parent(use)
            own = isinstance(use, cst.Attribute) or self.tree.function(use) is init
            taker = self.tree.parent(above) if isinstance(above, cst.Arg) and above.value is use else None
            given = taker is not None and not (self.names.call(taker) or "").startswith(_TAKERS)
            if spelled == name and own and (given or (isinstance(above, cst.Call) and above.func is use)):
                return True
        return False

    def _uses(self, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
        assigns = self.tree.own(function.body, cst.Assign)
        return [each.value for each in assigns if isinstance(each.value, cst.Name) and each.value.value == name]

    def _draft(self, call: cst.Call, names: list[str]) -> Draft | None:
        ignore = next(
            (arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "ignore"), None
        )
        old = self.names.constant(ignore) if ignore is not None else ()
        known = [old] if isinstance(old, str) else list(old) if isinstance(old, (list, tuple)) else []
        display = "[" + ", ".join(f'"{each}"' for each in dict.fromkeys([*known, *names])) + "]"
        return (
            replace(self.code, ignore, display)
            if ignore is not None
            else insert_argument(self.code, call, f"ignore={display}")
        )


def _said(kind: str, names: list[str]) -> str:
    article = "an" if kind == "optimizer" else "a"
    return f"`{names[0]}` is {article} {kind}" if len(names) == 1 else f"{_listed(names)} are {kind}s"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
