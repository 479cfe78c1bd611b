from __future__ import annotations

from itertools import islice

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.facts.classes import MODULE
from lightlint.facts.configured import CONFIGURE, Part, Returned
from lightlint.fixes.edits import replace

_GIVERS = {"optimizers": "optimizer", "lr_schedulers": "scheduler"}
_OF_ONE = {
    "step",
    "zero_grad",
    "param_groups",
    "state_dict",
    "load_state_dict",
    "toggle_model",
    "optimizer",
    "get_last_lr",
}


class OptimizerCountMismatch(Check):
    def visit_Call(self, call: cst.Call) -> None:
        func, method = call.func, self.names.method(call)
        if method not in _GIVERS or not isinstance(func, cst.Attribute) or not self.classes.is_self(func.value):
            return
        node = self.tree.enclosing_class(call)
        if node is None or not self.classes.is_a(node, MODULE) or self.classes.has_method(node, method):
            return
        count = self._count(node, method)
        if count is None:
            return
        faults = ((use, fault) for use in self._uses(call) if (fault := self._fault(use, count, method)))
        for use, fault in islice(faults, 1):  # the first raises
            self.report(use, fault, repair=self._repair(call, use, count))

    def _count(self, node: cst.ClassDef, method: str) -> int | None:
        """How many optimizers or schedulers `configure_optimizers` returns, whichever way it goes."""
        configure = self.classes.method(node, CONFIGURE.name)
        facts = self.facts.optimization
        others = [each for each in facts.subclasses(node) if CONFIGURE.name in self.classes.methods(each)]
        if configure is None or configure.decorators or others or self.tree.own(configure, cst.Yield):
            return None
        if not self.classes.complete(node) or self.facts.project.users(self.facts.path, CONFIGURE.name):
            return None
        found = self.facts.configured.of(configure)
        counts = {self._schedulers(each) if method == "lr_schedulers" else _optimizers(each) for each in found}
        return counts.pop() if len(counts) == 1 else None

    def _schedulers(self, returned: Returned) -> int | None:
        """The number of schedulers of one return value, as far as it is spelled out in it."""
        if returned.part is Part.DICT and len(returned.dicts) == 1:
            entries = returned.dicts[0]
            return 1 if "lr_scheduler" in entries.values else 0 if entries.closed else None
        if returned.part is Part.OPTIMIZER:
            return 0
        value = returned.value
        second = (
            value.elements[1].value if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == 2 else None
        )
        if returned.parts[:1] != (Part.LIST,) or not isinstance(second, cst.List):
            return None
        return len(second.elements) if all(isinstance(each, cst.Element) for each in second.elements) else None

    def _uses(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The call, and the reads of the one name it is given to, if nothing asks what that name holds."""
        above = self.tree.parent(call)
        target = above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
        if not isinstance(target, cst.Name):
            return [call]
        found = self.names.bindings.lookup(target)
        if len(found) != 1 or found[0].kind is not Kind.ASSIGN:
            return []
        reads = [
            each
            for each in self.tree.own(self.tree.owner(call), cst.Name)
            if each.value == target.value and each is not target
        ]
        return [] if any(self._asks(each) for each in reads) else list(reads)

    def _asks(self, read: cst.Name) -> bool:
        """Whether a read is a question about the value: `isinstance(x, list)`, `len(x)`, `x is None`, `if x:`."""
        above = self.tree.parent(read)
        call = self.tree.parent(above) if isinstance(above, cst.Arg) else None
        if isinstance(call, cst.Call):
            return self.names.call(call) in {"builtins.isinstance", "builtins.len", "builtins.type", "builtins.hasattr"}
        tests = (cst.Comparison, cst.ComparisonTarget, cst.If, cst.IfExp, cst.BooleanOperation, cst.UnaryOperation)
        return isinstance(above, tests)

    def _fault(self, use: cst.BaseExpression, count: int, method: str) -> str:
        above, what = self.tree.parent(use), _GIVERS[method]
        if count == 0:
            fails = isinstance(above, (cst.Attribute, cst.Subscript)) and above.value is use
            return f"`self.{method}()` is None: `configure_optimizers` returns no {what}" if fails else ""
        if count == 1:
            return f"`self.{method}()` is one {what} and no list of them" if self._takes_apart(use) else ""
        if isinstance(above, cst.Attribute) and above.value is use and above.attr.value in _OF_ONE:
            return f"`self.{method}()` is a list of {count} {what}s, which has no `{above.attr.value}`"
        width = self._width(use)
        return f"`self.{method}()` gives {count} {what}s to {width} names" if width and width != count else ""

    def _takes_apart(self, use: cst.BaseExpression) -> bool:
        above = self.tree.parent(use)
        if isinstance(above, cst.Subscript):
            return above.value is use
        if isinstance(above, (cst.For, cst.CompFor)):
            return above.iter is use
        return isinstance(above, cst.StarredElement) or self._width(use) > 0

    def _width(self, use: cst.BaseExpression) -> int:
        """The number of names among which a value is divided, 0 where it is not or one takes the rest."""
        above = self.tree.parent(use)
        target = above.targets[0].target if isinstance(above, cst.Assign) and above.value is use else None
        if not isinstance(target, (cst.Tuple, cst.List)):
            return 0
        return len(target.elements) if all(isinstance(each, cst.Element) for each in target.elements) else 0

    def _repair(self, call: cst.Call, use: cst.BaseExpression, count: int) -> Repair | None:
        above = self.tree.parent(use)
        if count != 1 or use is not call or not isinstance(above, cst.Subscript):
            return None
        index = above.slice[0].slice
        if not isinstance(index, cst.Index) or self.names.constant(index.value) not in (0, -1):
            return None
        return Repair("take it as it is", replace(self.code, above, self.code.text_of(call)))


def _optimizers(returned: Returned) -> int | None:
    return len(returned.optimizers) if returned.optimizers is not None else None
