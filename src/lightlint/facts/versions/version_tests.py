"""Which way a test of a package's version lets newer versions go, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.names import UNKNOWN
from lightlint.facts.ranks.comparisons import mirrored

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_DEPTH = 4
_NOTHING = re.compile("(?!)")
_OURS = re.compile(r"(?:torch|torchvision|torchaudio|torchtext|torchdata|lightning|pytorch_lightning)(?:\.|$)")
_READ = re.compile(rf"{_OURS.pattern}|(?:transformers|trl|peft|accelerate)(?:\.|$)")
_DISTRIBUTIONS = re.compile(
    r"(?:torch|torchvision|torchaudio|lightning|pytorch[-_]lightning|transformers|trl|peft|accelerate)$"
)
_ABOUT_DEVICES = ("torch.backends", "torch.xpu", "torch.mps", "torch.npu")  # `hasattr(torch.backends, "mps")`
_READERS = {"importlib.metadata.version", "importlib_metadata.version", "pkg_resources.get_distribution"}
_SIGNATURES = {"inspect.signature", "inspect.getfullargspec", "inspect.getargspec", "dataclasses.fields"}
_TAKEN = {"__dataclass_fields__", "__annotations__", "co_varnames", "model_fields"}  # what a class or function takes
_LOOKUPS = {"builtins.hasattr", "builtins.getattr"}
_ASKS = re.compile("__version__|metadata|hasattr|getattr|signature|fields")
_RISING = (cst.GreaterThan, cst.GreaterThanEqual)
_FALLING = (cst.LessThan, cst.LessThanEqual)


class Leads(StrEnum):
    """Where an outcome of a test leads: `NEWER` surely lets the newest versions on, `OLDER` may keep them out."""

    OLDER = "older"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class VersionTests:
    """The tests of one file.

    Args:
        facts: the file's.
        telling: what names in a test look like that are taken to ask for a version, whatever they hold. What a flag
            is set to must ask for one by fact.
    """

    facts: Linked
    telling: re.Pattern[str] = field(default=_NOTHING)

    def leads(self, test: cst.BaseExpression, outcome: bool, depth: int = 0) -> Leads | None:
        """Where an outcome of a test leads; None for a test that asks for no version."""
        if depth > _DEPTH:
            return None
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                return self.leads(test.expression, not outcome, depth)
            case cst.BooleanOperation():
                found = [self.leads(part, outcome, depth) for part in (test.left, test.right)]
                both = isinstance(test.operator, cst.And) is outcome  # both parts came out that way
                return _either(found) if both else _all_of(found)
            case cst.NamedExpr():
                return self.leads(test.value, outcome, depth)
            case cst.Comparison(comparisons=[only]):
                return self._compared(test, only, outcome)
            case cst.Name() | cst.Attribute():
                return _either(self._flags(test, outcome, depth)) or self._whole(test)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="startswith")), args=[only]):
                return self._prefixed(test, only, outcome)
            case cst.Call(args=[only]) if self.facts.names.call(test) == "builtins.bool":
                return self.leads(only.value, outcome, depth)
            case cst.Call():
                return _either(self._answers(test, outcome, depth)) or self._whole(test)
        return self._whole(test)

    def _whole(self, test: cst.BaseExpression) -> Leads | None:
        return Leads.OLDER if self.asks(test) else None

    def _compared(self, test: cst.Comparison, only: cst.ComparisonTarget, outcome: bool) -> Leads | None:
        """`V >= (2, 4)`, `Version("2.4") <= V`: what compares with something fixed says which side is meant."""
        if not self.asks(test):
            return None
        if self._is_fixed(only.comparator):
            operator = only.operator
        elif self._is_fixed(test.left):
            operator = mirrored(only.operator)
        else:
            return Leads.OLDER
        rises = isinstance(operator, _RISING if outcome else _FALLING)
        return Leads.NEWER if rises else Leads.OLDER

    def _is_fixed(self, side: cst.BaseExpression) -> bool:
        """Whether a side is written out: a constant, a tuple of them, or `Version("2.4")`."""
        if isinstance(side, cst.Call):
            return bool(side.args) and all(self._is_fixed(arg.value) for arg in side.args)
        return self.facts.names.constant(side) is not UNKNOWN

    def _prefixed(self, test: cst.Call, only: cst.Arg, outcome: bool) -> Leads | None:
        """`torch.__version__.startswith("1.")`."""
        prefix = self.facts.names.constant(only.value)
        if not self.asks(test) or not isinstance(prefix, str):
            return self._whole(test)
        is_old = prefix[:1] in {"0", "1", "3", "4"}  # the last two: of Transformers
        return Leads.OLDER if is_old is outcome else Leads.NEWER

    def _flags(self, flag: cst.Name | cst.Attribute, outcome: bool, depth: int) -> Iterator[Leads | None]:
        """What is known of a flag from what it is set to, here or in the file it is imported from."""
        for tests, value, site in self._set_to(flag):
            constant = tests.facts.names.constant(value)
            if not isinstance(constant, bool):
                yield tests.leads(value, outcome, depth + 1)
            elif constant is outcome:
                yield tests.around(site, depth + 1)

    def _answers(self, call: cst.Call, outcome: bool, depth: int) -> Iterator[Leads | None]:
        """What is known of what a function gives back, here or in the file it is imported from."""
        for tests, function in self._called(call.func):
            for each in tests.facts.tree.own(function.body, cst.Return):
                constant = tests.facts.names.constant(each.value)
                if isinstance(constant, bool):
                    yield tests.around(each, depth + 1) if constant is outcome else None
                elif each.value is not None:
                    yield tests.leads(each.value, outcome, depth + 1)

    def around(self, node: cst.CSTNode, depth: int = 0) -> Leads | None:
        """As `under`, and a `try` that imports what some versions lack counts as well."""
        tries = [each for each in self.facts.tree.ancestors(node) if isinstance(each, cst.Try)]
        imports = any(self._imports_ours(each.body) for each in tries)
        return Leads.OLDER if imports else self.under(node, depth)

    def under(self, node: cst.CSTNode, depth: int = 0) -> Leads | None:
        """Where the tests lead that a node stands under."""
        return _either(self.leads(test, outcome, depth) for test, outcome in self._conditions(node))

    def _conditions(self, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, bool]]:
        """The tests that a node runs under, also those around its function and those in the body of its class."""
        yield from self.facts.conditions(node)
        tree, below = self.facts.tree, node
        for above in tree.ancestors(node):
            if isinstance(above, (cst.If, cst.IfExp)) and below is not above.test:
                yield above.test, below is above.body
            if isinstance(above, cst.Lambda):
                yield from self.facts.conditions(above)
            below = above

    def _imports_ours(self, body: cst.BaseSuite) -> bool:
        imports = self.facts.tree.within(body, cst.ImportFrom)
        return any(_OURS.match(self.facts.bindings.origin(each)) for each in imports)

    def _set_to(self, flag: cst.CSTNode) -> Iterator[tuple[VersionTests, cst.BaseExpression, cst.CSTNode]]:
        """The values a flag is given, each with the file and the place it is set in."""
        if isinstance(flag, cst.Attribute):
            owner = self.facts.classes.self_class(flag.value)
            held = (
                self.facts.classes.attribute_values(owner, flag.attr.value) if owner is not None else self._kept(flag)
            )
            for value in held:
                yield VersionTests(self.facts), value, value
        elif isinstance(flag, cst.Name):
            for tests, found in self._bindings(flag):
                if found.kind in {Kind.ASSIGN, Kind.PARAMETER} and found.value is not None:
                    yield tests, found.value, found.site

    def _kept(self, flag: cst.Attribute) -> Sequence[cst.BaseExpression]:
        """What an attribute of an object or of a class of the file is set to, by its spelling: `STATE.OLD = ...`."""
        spelled = self.facts.names.key(flag)
        return self.facts.fact(_by_spelling).get(spelled, ()) if spelled else ()

    def _called(self, func: cst.CSTNode) -> Iterator[tuple[VersionTests, cst.FunctionDef]]:
        for tests, found in self._bindings(func) if isinstance(func, cst.Name) else ():
            if found.kind is Kind.FUNCTION and isinstance(found.site, cst.FunctionDef):
                yield tests, found.site

    def _bindings(self, name: cst.Name) -> Iterator[tuple[VersionTests, Binding]]:
        """What a name means, for an imported one in the file of the project where it is set."""
        for found in self.facts.reaching.bindings(name):
            if found.kind is not Kind.IMPORT:
                yield VersionTests(self.facts), found
                continue
            module, _, last = found.dotted.rpartition(".")
            path = self.facts.project.find_module(module, self.facts.path.parent) if module else None
            if path is None or path == self.facts.path or not _ASKS.search(self.facts.project.text(path)):
                continue
            other = self.facts.other(path)
            if other is not None:
                tests = VersionTests(other)
                yield from ((tests, each) for each in other.bindings.lookup_in(last, other.tree.module))

    def asks(self, expression: cst.BaseExpression) -> bool:
        """Whether the value of an expression hangs on a version: what it spells, or what the names in it stand for."""
        names = self.facts.tree.within(expression, cst.Name)
        if any(self.telling.search(each.value) for each in names):
            return True
        pending: list[tuple[VersionTests, cst.BaseExpression]] = [(self, expression)]
        seen = {id(expression)}
        for _ in range(_DEPTH):
            if any(tests.spells(each) for tests, each in pending):
                return True
            found = [each for tests, part in pending for each in tests.behind(part)]
            pending = [each for each in found if id(each[1]) not in seen]
            seen.update(id(value) for _, value in pending)
        return False

    def behind(self, expression: cst.BaseExpression) -> Iterator[tuple[VersionTests, cst.BaseExpression]]:
        """What the names in an expression stand for, and what the functions in it give back."""
        for name in self.facts.tree.within(expression, cst.Name):
            if self.facts.names.is_word(name):
                continue
            for tests, value, _ in self._set_to(name):
                yield tests, value
            for tests, function in self._called(name):
                for each in tests.facts.tree.own(function.body, cst.Return):
                    if each.value is not None:
                        yield tests, each.value
        for attribute in self.facts.tree.within(expression, cst.Attribute):
            for tests, value, _ in self._set_to(attribute):
                yield tests, value

    def spells(self, expression: cst.BaseExpression) -> bool:
        """Whether an expression itself reads a version of a library, or looks whether it has a name."""
        tree, names = self.facts.tree, self.facts.names
        read = tree.within(expression, cst.Attribute, cst.Name)
        if any(_is_version(names.of(each), each) or _is_taken(names.of(each), each) for each in read):
            return True
        return any(self._looks(call) for call in tree.within(expression, cst.Call))

    def looks_at_arguments(self) -> bool:
        """Whether the file looks anywhere at what a class or a function takes."""
        tree, names = self.facts.tree, self.facts.names
        if any(_is_taken(names.of(each), each) for each in tree.all(cst.Attribute)):
            return True
        return any(names.call(each) in _SIGNATURES and self._looks(each) for each in tree.all(cst.Call))

    def _looks(self, call: cst.Call) -> bool:
        name, first = self.facts.names.call(call), call.args[0].value if call.args else None
        if name in _READERS:
            given = self.facts.names.constant(first)
            return isinstance(given, str) and bool(_DISTRIBUTIONS.match(given))
        about = self.facts.names.of(first)
        if name in _SIGNATURES:
            return about is None or bool(_READ.match(about))
        if len(call.args) == (3 if name == "builtins.getattr" else 2) and name in _LOOKUPS:
            named = self._may_be_text(call.args[1].value)
            return named and bool(about and _READ.match(about)) and about not in _ABOUT_DEVICES
        return False

    def _may_be_text(self, name: cst.BaseExpression) -> bool:
        """Whether a name is written out, or a setting's, which may be what newer versions have."""
        value = self.facts.names.constant(name)
        return isinstance(value, str) or (value is UNKNOWN and isinstance(name, cst.Attribute | cst.Subscript))


def _by_spelling(facts: Linked) -> dict[str, list[cst.BaseExpression]]:
    """The values of all assignments of a file, by what they are given to."""
    tree, names = facts.tree, facts.names
    found: dict[str, list[cst.BaseExpression]] = {}
    for assign in tree.all(cst.Assign):
        room = tree.class_of(assign)
        prefix = f"{room.name.value}." if room is not None and tree.owner(assign) is tree.owner(room) else ""
        for spelled in {f"{prefix}{names.key(each.target)}" for each in assign.targets}:
            found.setdefault(spelled, []).append(assign.value)
    return found


def _is_version(name: str | None, node: cst.Attribute | cst.Name) -> bool:
    """Whether a node is `torch.__version__`, or one of a module whose name is out of sight."""
    if isinstance(node, cst.Attribute) and name is None:
        return node.attr.value == "__version__"
    return bool(name and name.endswith(".__version__") and _READ.match(name))


def _is_taken(name: str | None, node: cst.Attribute | cst.Name) -> bool:
    """Whether a node is what a class or a function of a library takes."""
    return isinstance(node, cst.Attribute) and node.attr.value in _TAKEN and bool(name and _READ.match(name))


def _either(found: Iterable[Leads | None]) -> Leads | None:
    """Where several tests lead that all hold: one is enough to keep newer versions out."""
    known = {each for each in found if each is not None}
    return Leads.OLDER if Leads.OLDER in known else Leads.NEWER if known else None


def _all_of(found: Iterable[Leads | None]) -> Leads | None:
    """Where several tests lead of which one holds: each must keep newer versions out."""
    known = {each for each in found if each is not None}
    return Leads.NEWER if Leads.NEWER in known else Leads.OLDER if known else None
