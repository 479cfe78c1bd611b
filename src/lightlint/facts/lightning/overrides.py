"""Methods that override or imitate Lightning's hooks: whose they are, what they take, what Lightning passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.lightning.hooks import Owner
from lightlint.facts.objects.classes import CALLBACK, DATA_MODULE, MODULE
from lightlint.facts.objects.decorations import decorations
from lightlint.facts.project.across import elsewhere
from lightlint.facts.releases.api import ClassApi, Parameter, lightning_api

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

# decorators that leave the parameters of a method as they are
_HARMLESS = {"override", "abstractmethod", "no_grad", "enable_grad", "inference_mode", "rank_zero_only", "overrides", "typechecked", "jaxtyped", "profile"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Taken:
    """The parameters of a method, without `self`."""

    positional: tuple[cst.Param, ...]
    keyword_only: tuple[cst.Param, ...]
    takes_rest: bool
    takes_keywords: bool

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the positional parameters without a default."""
        return tuple(param.name.value for param in self.positional if param.default is None)

    def named(self, name: str) -> cst.Param | None:
        """The parameter of a name."""
        return next((each for each in (*self.positional, *self.keyword_only) if each.name.value == name), None)


def class_api(owner: Owner) -> ClassApi:
    """What Lightning's class of that kind has and had."""
    api = lightning_api()
    return {Owner.MODULE: api.lightning_module, Owner.CALLBACK: api.callback, Owner.DATA_MODULE: api.datamodule}[owner]


def owner_of(facts: Linked, function: cst.FunctionDef) -> Owner | None:
    """The kind of Lightning class a method belongs to, its own or, for a mixin, one that derives from it."""
    return owner_of_name(facts, facts.tree.class_of(function), function.name.value)


def owner_of_name(facts: Linked, node: cst.ClassDef | None, name: str) -> Owner | None:
    """As `owner_of`, for what a class calls by a name."""
    role = facts.hooks.role(node)
    return role if node is None or role is not None else _owner_elsewhere(facts, node, name)


def _owner_elsewhere(facts: Linked, node: cst.ClassDef, name: str) -> Owner | None:
    """What a class of another file is that gets a hook from a mixin of this: neither overrides it, nor comes Lightning's
    class first where that has one, too."""
    bases = {MODULE: Owner.MODULE, DATA_MODULE: Owner.DATA_MODULE, CALLBACK: Owner.CALLBACK}
    for heir in facts.classes.heirs_elsewhere(node) if facts.classes.complete(node) else ():
        for at, base in enumerate(heir.above if name not in heir.summary.methods else ()):
            mixed = any(each.rpartition(".")[2] == node.name.value for each in heir.above[:at])
            if base in bases and (mixed or name in class_api(bases[base]).removed):
                return bases[base]
    return None


def taken(facts: Linked, function: cst.FunctionDef) -> Taken | None:
    """What a method takes, None where a decorator may change that."""
    if is_changed(facts, function):
        return None
    params = function.params
    plain = (*params.posonly_params, *params.params)
    return Taken(
        positional=tuple(plain[1:]),
        keyword_only=tuple(params.kwonly_params),
        takes_rest=isinstance(params.star_arg, cst.Param) or not plain,
        takes_keywords=params.star_kwarg is not None,
    )


def is_changed(facts: Linked, function: cst.FunctionDef) -> bool:
    """Whether a decorator may make something else of a function: all but those that are known to hand everything on."""
    return not all(_is_harmless(each) or _hands_on(facts, each) for each in decorations(facts.tree, function))


def _hands_on(facts: Linked, decorator: cst.BaseExpression) -> bool:
    """Whether a function of the project gives what it is given, or a wrapper that calls it with all that comes and gives its
    result."""
    found = facts.bindings.lookup(decorator) if isinstance(decorator, cst.Name) else []
    maker = found[0].site if len(found) == 1 else None
    place = elsewhere(facts, facts.names.of(decorator) or "", facts.path.parent, "def ")
    if not isinstance(maker, cst.FunctionDef) and place is not None:
        facts, maker = place.facts, place.function
    if not isinstance(maker, cst.FunctionDef) or maker.decorators or len(maker.params.params) != 1:
        return False
    given = maker.params.params[0].name.value
    wrappers = {each.name.value: each for each in facts.tree.own(maker.body, cst.FunctionDef)}
    returned = [each.value for each in facts.tree.own(maker.body, cst.Return)]
    sources = [source for each in returned if each is not None for source in facts.reaching.sources(each)]
    names = [each.value if isinstance(each, cst.Name) else "" for each in sources]
    return (
        bool(names)
        and None not in returned
        and all(name == given or (name in wrappers and _calls_with_all(facts, wrappers[name], given)) for name in names)
    )


def _calls_with_all(facts: Linked, wrapper: cst.FunctionDef, given: str) -> bool:
    """Whether a wrapper gives on every way out what a function gives for all that the wrapper gets."""
    params = wrapper.params
    if not isinstance(params.star_arg, cst.Param) or params.star_kwarg is None or params.kwonly_params:
        return False
    wanted = [each.name.value for each in params.params]
    wanted += [f"*{params.star_arg.name.value}", f"**{params.star_kwarg.name.value}"]
    returned = [each.value for each in facts.tree.own(wrapper.body, cst.Return)]
    sources = [source for each in returned if each is not None for source in facts.reaching.sources(each)]
    return bool(sources) and None not in returned and all(_is_call(each, given, wanted) for each in sources)


def _is_call(value: cst.BaseExpression, name: str, wanted: Sequence[str]) -> bool:
    if not isinstance(value, cst.Call) or getattr(value.func, "value", "") != name:
        return False
    return [f"{each.star}{getattr(each.value, 'value', '')}" for each in value.args if each.keyword is None] == [
        *wanted
    ]


def _is_harmless(decorator: cst.BaseExpression) -> bool:
    target = decorator.func if isinstance(decorator, cst.Call) else decorator
    last = target.attr.value if isinstance(target, cst.Attribute) else getattr(target, "value", "")
    return last in _HARMLESS


def is_stub(function: cst.FunctionDef) -> bool:
    """Whether a function only documents, passes or raises."""
    return all(_says_nothing(statement) for statement in function.body.body)


def _says_nothing(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return isinstance(statement, (cst.Pass, cst.Raise)) or (
            isinstance(statement, cst.Expr) and isinstance(statement.value, (cst.BaseString, cst.Ellipsis))
        )
    return all(_says_nothing(small) for small in statement.body)


def names_of(parameters: Sequence[Parameter]) -> list[str]:
    """Names of what Lightning surely passes by position."""
    return [each.name for each in parameters if each.required]
