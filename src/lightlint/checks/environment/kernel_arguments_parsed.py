from __future__ import annotations

import libcst as cst

from lightlint.check import Check
from lightlint.facts.code.bindings import Kind

_KERNELS = {"-f", "--f"}  # options that a notebook declares to swallow what its kernel is started with
_DEPTH = 3


class KernelArgumentsParsed(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if not self.facts.source.is_notebook or self.names.method(call) != "parse_args":
            return
        func = call.func
        made = self.values.constructor(func.value) if isinstance(func, cst.Attribute) else None
        if made is None or made.name != "argparse.ArgumentParser" or self._takes_kernels():
            return
        given = self.names.argument(call, "args", 0)
        if self.names.has_star(call) or not self._runs(call, given.value if given else None, 0):
            return
        self.report(call, "in a notebook these are the arguments of the kernel, which argparse refuses: SystemExit")

    def visit_Name(self, name: cst.Name) -> None:
        if name.value != "__file__" or not self.facts.source.is_notebook or self.names.bindings.lookup(name):
            return
        above = self.tree.parent(name)
        if (isinstance(above, cst.Attribute) and above.attr is name) or (
            isinstance(above, cst.Arg) and above.keyword is name
        ):
            return
        if self._runs(name, None, 0):
            self.report(name, "a notebook's cells have no `__file__`: NameError")

    def _takes_kernels(self) -> bool:
        """Whether the notebook sets the arguments, or declares the one that its kernel is started with."""
        for call in self.tree.all(cst.Call):
            if self.names.method(call) == "add_argument" and any(map(self._is_kernels, call.args)):
                return True
        used = [each for each in self.tree.all(cst.Attribute) if each.attr.value == "argv"]
        return bool(used)

    def _is_kernels(self, arg: cst.Arg) -> bool:
        option = self.names.constant(arg.value)
        return isinstance(option, str) and option in _KERNELS

    def _runs(self, node: cst.CSTNode, given: cst.BaseExpression | None, depth: int) -> bool:
        """Whether a cell surely comes to a node, with nothing given for the arguments."""
        if given is not None and self.names.constant(given) is not None:
            return self._runs_by_default(node, given, depth)
        if not self._is_plain(node):
            return False
        function = self.tree.function(node)
        if function is None:
            return True
        calls = self.facts.steps.calls_of.get(function, ()) if depth < _DEPTH else ()
        return any(self._runs(call, None, depth + 1) for call in calls)

    def _runs_by_default(self, node: cst.CSTNode, given: cst.BaseExpression, depth: int) -> bool:
        """The same where a parameter is handed on, which is None by default and a call leaves at that."""
        bound = self.names.bindings.lookup(given) if isinstance(given, cst.Name) else []
        function = self.tree.function(node)
        only = bound[0] if len(bound) == 1 and bound[0].kind is Kind.PARAMETER else None
        if only is None or function is None or only.scope is not function or not self._is_plain(node):
            return False
        none = only.value is not None and self.names.constant(only.value) is None
        calls = self.facts.steps.calls_of.get(function, ()) if depth < _DEPTH else ()
        for call in calls:
            passed = self.values.given(function, call, only.name)
            if self.names.has_star(call) or (passed is None and not none):
                continue
            if self._runs(call, passed, depth + 1):
                return True
        return False

    def _is_plain(self, node: cst.CSTNode) -> bool:
        """Whether no test and no `try` stands around a node in its function but for `__name__`, which a kernel passes."""
        if any(isinstance(each, (cst.Try, cst.TryStar)) for each in self.tree.ancestors(node)):
            return False
        tests = [test for test, _ in self.facts.conditions(node)]
        return all(any(each.value == "__name__" for each in self.tree.within(test, cst.Name)) for test in tests)
