"""Canonical names and constant values of expressions."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache

import libcst as cst

from lightlint.facts.code.bindings import Binding, Bindings, Kind, dotted_name
from lightlint.facts.code.tree import Scope, Tree
from lightlint.facts.code.unknown import UNKNOWN as UNKNOWN
from lightlint.values.canonical import LIBRARIES, canonical

_DEPTH = 6
# asked by type: `isinstance` on libcst's abstract classes is slow where it says no
_CONSTANT = {
    cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString, cst.Name, cst.UnaryOperation, cst.List, cst.Tuple,
}  # fmt: skip


class Names:
    """Resolves expressions of one file. `module` is the file's own dotted name, `<file>` if it has none."""

    def __init__(self, tree: Tree, bindings: Bindings, module: str = "") -> None:
        self._tree = tree
        self.bindings = bindings
        self.module = module or "<file>"
        self._words: dict[tuple[str, int, int], str | None] = {}  # by the `id` of a scope
        self.of = cache(self._of)  # a method under `cache` would keep every file's names alive

    def _of(self, expression: cst.CSTNode | None) -> str | None:
        """The canonical full name an expression stands for, None if it stands for none or may stand for several.

        `torch.nn.functional.relu`, `lightning.Trainer`, `builtins.open`; a class or function of this file is
        `<module>.name`. Aliases (`DL = DataLoader`) and `try: import a / except: import b` with one meaning resolve.
        """
        return self._resolve(expression, 0)

    def _resolve(self, expression: cst.CSTNode | None, depth: int) -> str | None:
        if depth > _DEPTH:
            return None
        if type(expression) is cst.Name:
            return self._of_name(expression, depth)
        if type(expression) is cst.Attribute:
            base = self._resolve(expression.value, depth + 1)
            return canonical(f"{base}.{expression.attr.value}") if base else None
        return None

    def written_in(self, dotted: str, scope: Scope) -> str | None:
        """As `of`, for a name that a string spells, such as an annotation in quotes, in some scope."""
        first, _, rest = dotted.partition(".")
        base = self._of_word(first, scope, 0)
        return canonical(f"{base}.{rest}") if base and rest else base

    def _of_name(self, name: cst.Name, depth: int) -> str | None:
        return self._of_word(name.value, self._tree.scope(name), depth)

    def _of_word(self, word: str, scope: Scope, depth: int) -> str | None:
        key = word, id(scope), depth
        if key not in self._words:  # a name that is bound n times is read n times, too
            self._words[key] = self._found(word, scope, depth)
        return self._words[key]

    def _found(self, word: str, scope: Scope, depth: int) -> str | None:
        found = self.bindings.lookup_in(word, scope)
        if not found:
            return f"builtins.{word}" if hasattr(builtins, word) else self._from_star(word)
        if any(binding.kind is Kind.IMPORT for binding in found):  # `except ImportError: x = None` adds no meaning
            found = [binding for binding in found if dotted_name(binding.value) != "None"]
        meanings = {self._meaning(binding, depth) for binding in found}
        return meanings.pop() if len(meanings) == 1 else None

    def _meaning(self, binding: Binding, depth: int) -> str | None:
        if binding.kind is Kind.IMPORT:
            return canonical(binding.dotted)
        if binding.kind in {Kind.FUNCTION, Kind.CLASS}:
            return self.defined(binding.site)
        if binding.kind is Kind.ASSIGN and not binding.path and isinstance(binding.value, (cst.Name, cst.Attribute)):
            if isinstance(binding.value, cst.Name) and binding.value.value == binding.name:
                return None
            return self._resolve(binding.value, depth + 1)
        return None

    def _from_star(self, name: str) -> str | None:
        """A name that only a star import can have brought: known where the module's public names are its own."""
        modules = [module for module in self.bindings.stars if module.startswith(LIBRARIES)]
        return canonical(f"{modules[0]}.{name}") if len(self.bindings.stars) == len(modules) == 1 else None

    def defined(self, node: cst.CSTNode) -> str:
        """Canonical name of a class or function of this file, as `of` gives it for what means it."""
        return canonical(f"{self.module}.{self.qualified(node)}")

    def qualified(self, node: cst.CSTNode) -> str:
        """Dotted path of a class or function inside this module."""
        parts = [node.name.value] if isinstance(node, (cst.ClassDef, cst.FunctionDef)) else []
        for above in self._tree.ancestors(node):
            if isinstance(above, (cst.ClassDef, cst.FunctionDef)):
                parts.append(above.name.value)
        return ".".join(reversed(parts))

    def call(self, node: cst.CSTNode | None) -> str | None:
        """Canonical name of what a call calls, None for anything but a call."""
        return self.of(node.func) if type(node) is cst.Call else None

    def called(self, name: str) -> Sequence[cst.Call]:
        """The calls of a canonical name, in source order."""
        return self._calls.get(name, ())

    @cached_property
    def _calls(self) -> dict[str | None, list[cst.Call]]:
        found: dict[str | None, list[cst.Call]] = defaultdict(list)
        for call in self._tree.all(cst.Call):
            found[self.call(call)].append(call)
        return found

    def method(self, node: cst.CSTNode | None) -> str:
        """The last part of what a call calls (`zero_grad` of `opt.zero_grad()`), by spelling; empty for no call."""
        if type(node) is not cst.Call:
            return ""
        func = node.func
        if type(func) is cst.Attribute:
            return func.attr.value
        return func.value if type(func) is cst.Name else ""

    def key(self, expression: cst.CSTNode | None) -> str:
        """Spelling of a receiver that names one object within a function: `opt`, `self.opt`, `opts["D"]`; else empty."""
        if type(expression) is cst.Subscript and len(expression.slice) == 1:
            index = expression.slice[0].slice
            base = self.key(expression.value)
            if base and isinstance(index, cst.Index):
                value = self.constant(index.value)
                return f"{base}[{value!r}]" if isinstance(value, (str, int)) else ""
            return ""
        return dotted_name(expression)

    def is_word(self, name: cst.CSTNode) -> bool:
        """Whether a name is the one behind a dot or of a keyword, which is none of a variable."""
        above = self._tree.parent(name)
        return (isinstance(above, cst.Attribute) and above.attr is name) or (
            isinstance(above, cst.Arg) and above.keyword is name
        )

    def constant(self, expression: cst.CSTNode | None, depth: int = 0) -> object:
        """The value of a constant expression or of a name bound once to one, else `UNKNOWN`."""
        if type(expression) not in _CONSTANT:
            return UNKNOWN
        match expression:
            case cst.Integer() | cst.Float() | cst.SimpleString():
                return _literal(expression.value)
            case cst.ConcatenatedString():
                text = expression.evaluated_value
                return UNKNOWN if text is None else text
            case cst.Name(value="True" | "False" | "None" as word):
                return {"True": True, "False": False, "None": None}[word]
            case cst.UnaryOperation(operator=cst.Minus()):
                value = self.constant(expression.expression, depth)
                return -value if isinstance(value, (int, float)) else UNKNOWN
            case cst.List() | cst.Tuple():
                items = [self.constant(element.value, depth) for element in expression.elements]
                plain = all(isinstance(element, cst.Element) for element in expression.elements)
                return items if plain and UNKNOWN not in items else UNKNOWN
            case cst.Name() if depth < _DEPTH:
                found = self.bindings.lookup(expression)
                if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path:
                    return self.constant(found[0].value, depth + 1)
        return UNKNOWN

    def argument(self, call: cst.Call, keyword: str, position: int | None = None) -> cst.Arg | None:
        """The argument a call gives for a parameter, by keyword or by position (not behind a `*args`)."""
        starred = False
        for index, arg in enumerate(call.args):
            starred = starred or bool(arg.star)
            if arg.keyword is None:
                if index == position and not starred:
                    return arg
            elif arg.keyword.value == keyword:
                return arg
        return None

    def has_star(self, call: cst.Call) -> bool:
        """Whether a call takes `*args` or `**kwargs` whose contents are out of sight."""
        return any(arg.star for arg in call.args)


@lru_cache(maxsize=2048)
def _literal(text: str) -> object:
    """The value of a number or a text: a file says the same ones over and over, and `ast` takes long for each."""
    if text[0] in "'\"" and "\\" not in text and "\r" not in text:
        return text[3:-3] if len(text) > 5 and text[0] == text[1] == text[2] else text[1:-1]
    return ast.literal_eval(text)
