"""What makes libcst's nodes without their space and punctuation: one function for each kind."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any

import libcst as cst

Maker = Callable[..., Any]


def maker(kind: type[cst.CSTNode], *names: str) -> Maker:
    """A function that makes a node from the values of these fields and leaves the others unset.

    Most nodes have one to three fields; without a loop over them they take half the time.
    """
    new, setters = object.__new__, [_setter(kind, name) for name in names]
    first, second, third = (setters * 3)[:3]

    def make_one(value: Any) -> Any:
        node = new(kind)
        first(node, value)
        return node

    def make_two(one: Any, two: Any) -> Any:
        node = new(kind)
        first(node, one)
        second(node, two)
        return node

    def make_three(one: Any, two: Any, three: Any) -> Any:
        node = new(kind)
        first(node, one)
        second(node, two)
        third(node, three)
        return node

    def make(*values: Any) -> Any:
        node = new(kind)
        for setter, value in zip(setters, values, strict=True):
            setter(node, value)
        return node

    makers: dict[int, Maker] = {1: make_one, 2: make_two, 3: make_three}
    return makers.get(len(names), make)


def _setter(kind: type[cst.CSTNode], name: str) -> Callable[[Any, Any], None]:
    """What sets a field of a frozen dataclass, by its slot where it has one."""
    slot = getattr(kind, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__

    def assign(node: Any, value: Any) -> None:
        object.__setattr__(node, name, value)

    return assign


def bare(kind: Any) -> Any:
    """A node without any field set."""
    return object.__new__(kind)


MODULE = maker(cst.Module, "body")
NAME = maker(cst.Name, "value")
ATTRIBUTE = maker(cst.Attribute, "value", "attr")
ARG = maker(cst.Arg, "value", "keyword", "star")
CALL = maker(cst.Call, "func", "args")
ELEMENT = maker(cst.Element, "value")
STARRED = maker(cst.StarredElement, "value")
LINE = maker(cst.SimpleStatementLine, "body")
BLOCK = maker(cst.IndentedBlock, "body")
SUITE = maker(cst.SimpleStatementSuite, "body")
ELSE = maker(cst.Else, "body")
PARAM = maker(cst.Param, "name", "annotation", "default", "star")
SLICE = maker(cst.Slice, "lower", "upper", "step")
INDEX = maker(cst.Index, "value", "star")
SUBSCRIPTED = maker(cst.SubscriptElement, "slice")
COMPARED = maker(cst.ComparisonTarget, "operator", "comparator")
TEST = maker(cst.CompIf, "test")
FOR_IN = maker(cst.CompFor, "target", "iter", "ifs", "inner_for_in", "asynchronous")
STRING = maker(cst.SimpleString, "value")
JOINED = maker(cst.ConcatenatedString, "left", "right")
TUPLE = maker(cst.Tuple, "elements")
ANNOTATION = maker(cst.Annotation, "annotation")
AS = maker(cst.AsName, "name")
ALIAS = maker(cst.ImportAlias, "name", "asname")
TARGET = maker(cst.AssignTarget, "target")
FROM = maker(cst.From, "item")
TEXT = maker(cst.FormattedStringText, "value")
FIELD = maker(cst.FormattedStringExpression, "expression", "conversion", "format_spec")
BOOLEAN = maker(cst.BooleanOperation, "left", "operator", "right")
FUNCTION = maker(cst.FunctionDef, "decorators", "name", "type_parameters", "params", "returns", "body", "asynchronous")
CLASS = maker(cst.ClassDef, "decorators", "name", "type_parameters", "bases", "keywords", "body")
DECORATOR = maker(cst.Decorator, "decorator")
IF = maker(cst.If, "test", "body", "orelse")
FOR = maker(cst.For, "target", "iter", "body", "orelse", "asynchronous")
WHILE = maker(cst.While, "test", "body", "orelse")
WITH = maker(cst.With, "items", "body", "asynchronous")
ITEM = maker(cst.WithItem, "item", "asname")
TRY = maker(cst.Try, "body", "handlers", "orelse", "finalbody")
HANDLER = maker(cst.ExceptHandler, "type", "name", "body")
FINALLY = maker(cst.Finally, "body")
IMPORT = maker(cst.Import, "names")
IMPORT_FROM = maker(cst.ImportFrom, "module", "names", "relative")
DEL = maker(cst.Del, "target")
ASSIGN = maker(cst.Assign, "targets", "value")
ANN_ASSIGN = maker(cst.AnnAssign, "target", "annotation", "value")
AUG_ASSIGN = maker(cst.AugAssign, "target", "operator", "value")
RAISE = maker(cst.Raise, "exc", "cause")
ASSERT = maker(cst.Assert, "test", "msg")
RETURN = maker(cst.Return, "value")
EXPR = maker(cst.Expr, "value")
NAMED_ITEM = maker(cst.NameItem, "name")
GLOBAL = maker(cst.Global, "names")
NONLOCAL = maker(cst.Nonlocal, "names")
FORMATTED = maker(cst.FormattedString, "parts")
SUBSCRIPT = maker(cst.Subscript, "value", "slice")
DICT = maker(cst.Dict, "elements")
ENTRY = maker(cst.DictElement, "key", "value")
STARRED_ENTRY = maker(cst.StarredDictElement, "value")
DICT_COMP = maker(cst.DictComp, "key", "value", "for_in")
COMPARISON = maker(cst.Comparison, "left", "comparisons")
BINARY = maker(cst.BinaryOperation, "left", "operator", "right")
UNARY = maker(cst.UnaryOperation, "operator", "expression")
IF_EXP = maker(cst.IfExp, "body", "test", "orelse")
LAMBDA = maker(cst.Lambda, "params", "body")
LIST = maker(cst.List, "elements")
SET = maker(cst.Set, "elements")
PARAMETERS = maker(cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params")
NAMED = maker(cst.NamedExpr, "target", "value")
AWAIT = maker(cst.Await, "expression")
YIELD = maker(cst.Yield, "value")
MATCH = maker(cst.Match, "subject", "cases")
CASE = maker(cst.MatchCase, "pattern", "guard", "body")
MATCH_VALUE = maker(cst.MatchValue, "value")
MATCH_SINGLETON = maker(cst.MatchSingleton, "value")
MATCH_LIST = maker(cst.MatchList, "patterns")
MATCH_TUPLE = maker(cst.MatchTuple, "patterns")
MATCH_ELEMENT = maker(cst.MatchSequenceElement, "value")
MATCH_STAR = maker(cst.MatchStar, "name")
MATCH_MAPPING = maker(cst.MatchMapping, "elements", "rest")
MATCH_ENTRY = maker(cst.MatchMappingElement, "key", "pattern")
MATCH_CLASS = maker(cst.MatchClass, "cls", "patterns", "kwds")
MATCH_KEYWORD = maker(cst.MatchKeywordElement, "key", "pattern")
MATCH_AS = maker(cst.MatchAs, "pattern", "name")
MATCH_OR = maker(cst.MatchOr, "patterns")
MATCH_CHOICE = maker(cst.MatchOrElement, "pattern")
NUMBERS = {
    int: maker(cst.Integer, "value"),
    float: maker(cst.Float, "value"),
    complex: maker(cst.Imaginary, "value"),
}
COMPREHENSIONS = {
    python: maker(kind, "elt", "for_in")
    for python, kind in (
        (ast.ListComp, cst.ListComp),
        (ast.SetComp, cst.SetComp),
        (ast.GeneratorExp, cst.GeneratorExp),
    )
}
ASYNC, DOT = bare(cst.Asynchronous), bare(cst.Dot)  # no nodes of the tree, so one of each will do

OPERATORS: dict[type, Any] = {
    python: bare(kind)
    for python, kind in {
        ast.Add: cst.Add, ast.Sub: cst.Subtract, ast.Mult: cst.Multiply, ast.Div: cst.Divide, ast.Mod: cst.Modulo,
        ast.FloorDiv: cst.FloorDivide, ast.MatMult: cst.MatrixMultiply, ast.Pow: cst.Power, ast.LShift: cst.LeftShift,
        ast.RShift: cst.RightShift, ast.BitOr: cst.BitOr, ast.BitAnd: cst.BitAnd, ast.BitXor: cst.BitXor,
        ast.Invert: cst.BitInvert, ast.Not: cst.Not, ast.UAdd: cst.Plus, ast.USub: cst.Minus,
        ast.And: cst.And, ast.Or: cst.Or, ast.Eq: cst.Equal, ast.NotEq: cst.NotEqual, ast.Lt: cst.LessThan,
        ast.LtE: cst.LessThanEqual, ast.Gt: cst.GreaterThan, ast.GtE: cst.GreaterThanEqual, ast.Is: cst.Is,
        ast.IsNot: cst.IsNot, ast.In: cst.In, ast.NotIn: cst.NotIn,
    }.items()
}  # fmt: skip
IN_PLACE: dict[type, Any] = {
    python: bare(kind)
    for python, kind in {
        ast.Add: cst.AddAssign, ast.Sub: cst.SubtractAssign, ast.Mult: cst.MultiplyAssign, ast.Div: cst.DivideAssign,
        ast.Mod: cst.ModuloAssign, ast.FloorDiv: cst.FloorDivideAssign, ast.MatMult: cst.MatrixMultiplyAssign,
        ast.Pow: cst.PowerAssign, ast.LShift: cst.LeftShiftAssign, ast.RShift: cst.RightShiftAssign,
        ast.BitOr: cst.BitOrAssign, ast.BitAnd: cst.BitAndAssign, ast.BitXor: cst.BitXorAssign,
    }.items()
}  # fmt: skip
UNSET: Any = cst.MaybeSentinel.DEFAULT
