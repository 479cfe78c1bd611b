from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.objects.classes import DATA_MODULE, MODULE, NN_MODULE
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability
from lightlint.fixes.edits import Draft, insert_after, insert_before

_DATACLASS = {"dataclasses.dataclass", "pydantic.dataclasses.dataclass"}


class MissingSuperInit(Check):
    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self.classes.is_a(node, MODULE, DATA_MODULE):
            if self.classes.is_a(node, NN_MODULE):
                self._judge_plain(node)
            return
        if not self.classes.is_a(node, MODULE) and self._starts_data_modules():
            return
        init = self._initialiser(node)
        if init is not None:
            self._judge(node, init)
        elif self._is_dataclass(node) and not self._hooks_in(node):
            base = self._base(node)
            fields = [each for each in self.tree.own(node, cst.AnnAssign) if self.tree.class_of(each) is node]
            self.report(
                node.name,
                f"the `__init__` that `dataclass` makes of `{node.name.value}` does not call that of {base}",
                repair=Repair("call it from `__post_init__`", self._post_init(fields), Applicability.UNSAFE),
            )

    def _starts_data_modules(self) -> bool:
        """Whether Lightning initialises every data module itself, as only 1.5 did in `LightningDataModule.__new__`."""
        return Version("1.5") <= self.facts.lightning.version < Version("1.6")

    def _initialiser(self, node: cst.ClassDef) -> cst.FunctionDef | None:
        """The method of a class in which the initialiser above has to be called: in a dataclass it is `__post_init__`."""
        own = self.classes.methods(node)
        written = "__post_init__" if "__init__" not in own and self._is_dataclass(node) else "__init__"
        return None if written == "__post_init__" and self.classes.has_method(node, "__new__") else own.get(written)

    def _judge_plain(self, node: cst.ClassDef) -> None:
        """A module of torch that assigns modules or parameters, which raises before the initialiser above has run."""
        init = self._initialiser(node)
        calls = self.tree.within(init, cst.Call) if init is not None else []
        if init is None or any(self._initialises(each, node) for each in calls) or not self.classes.complete(node):
            return
        if any(len(each.bases) > 1 for each in self.hooks.subclasses.get(node, ())):
            return  # a mixin: the class it is mixed into may have begun with the other base's initialiser
        for assign in self.tree.own(init.body, cst.Assign):
            target = assign.targets[0].target
            own = isinstance(target, cst.Attribute) and self.classes.is_self(target.value)
            made = self.names.call(assign.value) or ""
            if own and (made == "torch.nn.Parameter" or self.classes.name_is_a(made, NN_MODULE)):
                message = f"{_what(init, node)} of Module, which has to run before `self` gets modules"
                self.report(init.name, message, repair=self._repair(node, init))
                return

    def _judge(self, node: cst.ClassDef, init: cst.FunctionDef) -> None:
        calls = self.tree.within(init, cst.Call)
        if not any(self._initialises(call, node) for call in calls):
            message = f"{_what(init, node)} of {self._base(node)}"
            self.report(init.name, message, repair=self._repair(node, init))
            return
        if not self.classes.is_a(node, MODULE):
            return
        first = min(self.tree.order(call) for call in calls if self._initialises(call, node))
        for line in init.body.body:
            for assign in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                if isinstance(assign, cst.Assign) and self.tree.order(assign) < first:
                    self._judge_early(assign)

    def _judge_early(self, assign: cst.Assign) -> None:
        target = assign.targets[0].target
        own = isinstance(target, cst.Attribute) and self.classes.is_self(target.value)
        if own and self.values.is_module(assign.value):
            self.report(target, f"`{self.code.text_of(target)}` gets a module before `super().__init__()` has run")

    def _initialises(self, call: cst.Call, node: cst.ClassDef) -> bool:
        """Whether a call may run the initialiser above: `super().__init__()`, `Base.__init__(self)`, `start(self)`."""
        if self._starts_above(call, node):
            return False
        if self.names.call(call) == "builtins.super":
            return True
        return any(self.classes.is_self(arg.value) for arg in call.args) or self.names.method(call) == "__init__"

    def _starts_above(self, call: cst.Call, node: cst.ClassDef) -> bool:
        """Whether a call goes past the initialiser that has to run: `super(LightningModule, self)`, `nn.Module.__init__(self)`."""
        func = call.func
        maker = func.value if isinstance(func, cst.Attribute) and func.attr.value == "__init__" else call
        if isinstance(maker, cst.Call):
            named = maker.args[0].value if self.names.call(maker) == "builtins.super" and maker.args else None
            past = {MODULE, NN_MODULE} if self.classes.is_a(node, MODULE) else {NN_MODULE}
            return self.names.of(named) in past and not self.classes.is_a(node, DATA_MODULE)
        return (self.names.of(maker) == NN_MODULE and self.classes.is_a(node, MODULE)) or self._is_beside(maker)

    def _is_beside(self, maker: cst.BaseExpression) -> bool:
        """Whether something names a class of which no base is a module, and whose own initialiser goes no further."""
        named = self.classes.local(self.names.of(maker) or "")
        if named is None or not self.classes.complete(named) or self.classes.is_a(named, NN_MODULE, DATA_MODULE):
            return False
        init = self.classes.methods(named).get("__init__")
        return init is not None and not self.tree.within(init.body, cst.Call)

    def _repair(self, node: cst.ClassDef, init: cst.FunctionDef) -> Repair | None:
        """Call the initialiser first, unless there is a call that goes past it and was meant for it."""
        if any(self._starts_above(each, node) for each in self.tree.within(init, cst.Call)):
            return None
        return Repair("call it first", self._first(init))

    def _base(self, node: cst.ClassDef) -> str:
        return "LightningModule" if self.classes.is_a(node, MODULE) else "LightningDataModule"

    def _is_dataclass(self, node: cst.ClassDef) -> bool:
        """Whether `dataclass` writes the initialiser of a class."""
        for each in node.decorators:
            call = each.decorator if isinstance(each.decorator, cst.Call) else None
            if self.names.of(call.func if call else each.decorator) not in _DATACLASS:
                continue
            init = self.names.argument(call, "init", 0) if call else None
            return init is None and not (call and self.names.has_star(call))
        return False

    def _hooks_in(self, node: cst.ClassDef) -> bool:
        """Whether something else may call the initialiser: a `__post_init__` or `__new__`, one out of sight included."""
        return not self.classes.complete(node) or any(
            self.classes.has_method(node, name) for name in ("__post_init__", "__new__")
        )

    def _first(self, init: cst.FunctionDef) -> Draft | None:
        if not isinstance(init.body, cst.IndentedBlock):
            return None
        body = init.body.body
        line = body[0]
        text = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(text, cst.Expr) and isinstance(text.value, cst.BaseString):
            return insert_after(self.code, line, "super().__init__()")
        return insert_before(self.code, line, "super().__init__()")

    def _post_init(self, fields: list[cst.AnnAssign]) -> Draft | None:
        line = self.tree.parent(fields[-1]) if fields else None
        text = "\ndef __post_init__(self):\n    super().__init__()"
        return insert_after(self.code, line, text) if isinstance(line, cst.SimpleStatementLine) else None


def _what(init: cst.FunctionDef, node: cst.ClassDef) -> str:
    name = init.name.value
    return f"`{name}` of `{node.name.value}` does not call {'that' if name == '__init__' else '`__init__`'}"
