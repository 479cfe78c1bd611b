"""What goes through all there is: a range, a file, a list that was given as it is, and not a share of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_WHOLE = {
    "builtins.range", "builtins.open", "io.open", "gzip.open", "builtins.sorted", "builtins.list", "glob.glob", "glob.iglob",
    "os.listdir", "os.scandir", "os.walk", "json.load", "numpy.load", "pandas.read_csv",
}  # fmt: skip
_OF_WHOLE = {
    "items", "values", "keys", "readlines", "splitlines", "split", "iterrows", "itertuples", "glob", "rglob", "iterdir", "read",
}  # fmt: skip
_PASSES = {"builtins.enumerate", "builtins.zip", "builtins.map", "builtins.filter", "builtins.iter", "builtins.reversed", "csv.reader", "csv.DictReader", "itertools.chain", "tqdm.tqdm"}  # fmt: skip
_CHAINED = "itertools.chain.from_iterable"
_DEPTH = 6


class Wholes:
    """What the functions of one file iterate to its end."""

    def __init__(self, facts: FileFacts) -> None:
        self._tree = facts.tree
        self._names = facts.names
        self._classes = facts.classes
        self._hooks = facts.hooks
        self._values = facts.values

    def reads(self, start: cst.FunctionDef, depth: int = 0) -> bool:
        """Whether what `__iter__` goes through is all there is: a range, a file, a list that was given as it is."""
        loops = [loop for loop in self._tree.own(start, cst.For) if not any(self._tree.loops(loop))]
        passed = [each.item for each in self._tree.own(start, cst.From)]
        returned = [each.value for each in self._tree.own(start, cst.Return) if isinstance(each.value, cst.Call)]
        sources = [loop.iter for loop in loops] or passed or returned
        return bool(sources) and all(self._is_whole(source, depth) for source in sources)

    def _held(self, attribute: cst.Attribute) -> list[tuple[cst.BaseExpression | None, tuple[int, ...]]]:
        """What `self.paths` is given, in its class and in those of this file above it."""
        node = self._classes.self_class(attribute.value)
        if node is None:
            return []
        word = attribute.attr.value
        return [source for each in self._classes.line(node) for source in self._classes.attribute_sources(each, word)]

    def _gives_whole(self, call: cst.Call, depth: int) -> bool:
        """Whether a method of the data set's yields, or returns, all there is, and picks nothing from it."""
        made = self._hooks.callees(call) if isinstance(call.func, cst.Attribute) else ()
        bodies = [each.body for each in made]
        yields = [bool(self._tree.own(body, cst.Yield)) for body in bodies]
        returned = [each.value for body in bodies for each in self._tree.own(body, cst.Return)]
        if not made or any(map(self._picks, bodies)) or any(yields) != all(yields):
            return False
        if all(yields):
            return all(self.reads(each, depth + 1) for each in made)
        return bool(returned) and all(self._is_whole(each, depth + 1) for each in returned)

    def _picks(self, body: cst.CSTNode) -> bool:
        """Whether a body may leave something out."""
        tests = self._tree.own(body, cst.If, cst.BinaryOperation)
        return any(isinstance(each, cst.If) or isinstance(each.operator, cst.Modulo) for each in tests)

    def _is_whole(self, value: cst.CSTNode | None, depth: int) -> bool:
        if depth > _DEPTH:
            return False
        match value:
            case cst.List() | cst.Tuple() | cst.ListComp() | cst.SimpleString() | cst.Dict():
                return True
            case cst.Call() if self._names.call(value) in _WHOLE:
                return True
            case cst.Call() if self._names.call(value) in _PASSES:
                lazy = self._names.call(value) in {"builtins.map", "builtins.filter"}
                return all(self._is_whole(arg.value, depth + 1) for arg in value.args[lazy:] if arg.keyword is None)
            case cst.Call(args=[cst.Arg(value=parts)]) if self._names.call(value) == _CHAINED:
                return self._is_chain_whole(parts, depth + 1)
            case cst.Call(func=cst.Attribute(value=receiver)) if self._classes.is_self(receiver):
                return self._gives_whole(value, depth)
            case cst.Call(func=cst.Attribute()):
                return self._names.method(value) in _OF_WHOLE
            case cst.Name():
                found = self._names.bindings.lookup(value)
                return bool(found) and all(
                    self._is_bound_whole(each.kind, each.value, each.scope, value, depth) for each in found
                )
            case cst.Attribute():
                sources = self._held(value)
                return bool(sources) and all(not path and self._is_whole(each, depth + 1) for each, path in sources)
        return False

    def _is_chain_whole(self, parts: cst.BaseExpression, depth: int) -> bool:
        """Whether what `chain.from_iterable` strings together is all there is, of which functions of this file at most make
        the parts."""
        if not isinstance(parts, cst.GeneratorExp):
            return self._is_whole(parts, depth)
        part, source = parts.elt, parts.for_in
        known = isinstance(part, cst.Name) or (isinstance(part, cst.Call) and self._hooks.callee(part) is not None)
        return known and not source.ifs and self._is_whole(source.iter, depth)

    def _is_bound_whole(
        self, kind: Kind, value: cst.BaseExpression | None, scope: cst.CSTNode, name: cst.Name, depth: int
    ) -> bool:
        if kind in {Kind.ASSIGN, Kind.WITH}:
            return self._is_whole(value, depth + 1)
        if kind is not Kind.PARAMETER or not isinstance(scope, cst.FunctionDef):
            return False
        made = [*self._hooks.constructions.get(scope, ()), *self._hooks.calls_of.get(scope, ())]
        given = [self._values.given(scope, call, name.value) for call in made]
        return bool(given) and all(self._is_whole(each, depth + 1) for each in given)
