"""Which calls compute a loss of torch, as a function or as an instance of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.bindings import Binding, Kind
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.tensors.results import Results
from lightlint.facts.values.origins import Origin
from lightlint.models.names.parameters import parameters_of

if TYPE_CHECKING:
    from lightlint.facts.linked import Linked

_FUNCTIONS = {
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "kl_div": "KLDivLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "mse_loss": "MSELoss",
    "l1_loss": "L1Loss",
    "smooth_l1_loss": "SmoothL1Loss",
    "huber_loss": "HuberLoss",
}
# other losses whose result is a mean unless they are told otherwise
_OTHERS = {
    "ctc_loss": "CTCLoss",
    "triplet_margin_loss": "TripletMarginLoss",
    "cosine_embedding_loss": "CosineEmbeddingLoss",
    "margin_ranking_loss": "MarginRankingLoss",
    "gaussian_nll_loss": "GaussianNLLLoss",
    "poisson_nll_loss": "PoissonNLLLoss",
}
_SCALING = ("scale", "accum", "weight", "norm")  # in the name of a factor: it may be a division
_FUNCTIONAL = "torch.nn.functional."
_PARTIAL = "functools.partial"
_DEPTH = 7
_HELD_DEPTH = 3
_CLASSES = {f"torch.nn.{name}" for name in _FUNCTIONS.values()}


@dataclass(frozen=True, slots=True)
class Criterion:
    """A loss: the name of its class in `torch.nn`, what it is given, and the call that holds its settings."""

    name: str
    input: cst.BaseExpression
    target: cst.BaseExpression | None
    settings: cst.Call | None


class Criteria:
    """Losses of one file."""

    def __init__(self, facts: Linked) -> None:
        self._facts = facts

    def of(self, call: cst.Call) -> Criterion | None:
        """The loss that a call computes."""
        names = self._facts.names
        made_by: cst.Call | None = call
        name = names.of(call.func) or (self._kept_function(call.func) if call.args else "")
        if name.startswith(_FUNCTIONAL):
            name = _FUNCTIONS.get(name.removeprefix(_FUNCTIONAL), "")
        elif name or not call.args:
            return None  # a criterion, once made, is a value
        else:
            origins = self._facts.values.origins(call.func)
            kinds = {self._partial(origin) or origin.name for origin in origins}
            name = kinds.pop().removeprefix("torch.nn.") if len(kinds) == 1 and kinds <= _CLASSES else ""
            made_by = origins[0].call if len(origins) == 1 else None
            if made_by is not None and names.call(made_by) == _PARTIAL and _gives_more(call):
                made_by = None
        given = names.argument(call, "input", 0)
        target = names.argument(call, "target", 1)
        if not name or given is None or given.star:
            return None
        return Criterion(name, given.value, target.value if target else None, made_by)

    def _partial(self, origin: Origin) -> str:
        """The class that stands for what `partial(F.kl_div, reduction="sum")` computes, once it is given both values."""
        args = origin.call.args if origin.call is not None and origin.name == _PARTIAL else ()
        plain = [arg for arg in args if arg.keyword is None]
        held = {arg.keyword.value for arg in args if arg.keyword} & {"input", "target"}
        name = self._facts.names.of(plain[0].value) or "" if len(plain) == 1 and not plain[0].star and not held else ""
        kind = _FUNCTIONS.get(name.removeprefix(_FUNCTIONAL)) if name.startswith(_FUNCTIONAL) else None
        return f"torch.nn.{kind}" if kind else ""

    def _kept_function(self, func: cst.BaseExpression, depth: int = 0) -> str:
        """The function of torch that an attribute of `self`, or a parameter, surely holds; else empty."""
        sources: list[cst.BaseExpression | None] = []
        if isinstance(func, cst.Attribute):
            sources = self._given_to_attribute(func)
        elif isinstance(func, cst.Name):
            sources = self._given_to_name(func)
        if depth > _HELD_DEPTH or not sources:
            return ""
        found = {self._function(each, depth) for each in sources}
        return found.pop() if len(found) == 1 else ""

    def _function(self, source: cst.BaseExpression | None, depth: int) -> str:
        if not isinstance(source, (cst.Name, cst.Attribute)):
            return ""
        name = self._facts.names.of(source)
        if name is None:
            return self._kept_function(source, depth + 1)
        return name if name.startswith(_FUNCTIONAL) else ""

    def _given_to_attribute(self, attribute: cst.Attribute) -> list[cst.BaseExpression | None]:
        """What the class around sets `self.attribute` to. A function that a class body names becomes a method: None."""
        classes, tree = self._facts.classes, self._facts.tree
        node = classes.self_class(attribute.value)
        if node is None:
            return []
        sources = [each for one in classes.line(node) for each in classes.attribute_sources(one, attribute.attr.value)]
        kept = [None if path or value is None else value for value, path in sources]
        return [None if each is None or isinstance(tree.scope(each), cst.ClassDef) else each for each in kept]

    def _given_to_name(self, name: cst.Name) -> list[cst.BaseExpression | None]:
        """What the calls of a helper give for a parameter, its default where they give nothing."""
        facts, bound = self._facts, self._facts.names.bindings.lookup(name)
        function = bound[0].scope if len(bound) == 1 and bound[0].kind is Kind.PARAMETER else None
        if not isinstance(function, cst.FunctionDef) or facts.hooks.of(function):
            return []
        calls = (*facts.hooks.calls_of.get(function, ()), *facts.hooks.constructions.get(function, ()))
        if any(facts.names.has_star(each) for each in calls):
            return []
        return [facts.values.given(function, each, name.value) or bound[0].value for each in calls]

    def reduction(self, criterion: Criterion) -> object:
        """The reduction a loss was made with: "mean" unless it says otherwise, UNKNOWN if that is out of sight."""
        return self._reduction(criterion.settings)

    def _reduction(self, settings: cst.Call | None) -> object:
        names = self._facts.names
        if settings is None or names.has_star(settings):
            return UNKNOWN
        places = {name: place for place, name in enumerate(parameters_of(names.of(settings.func) or ""))}
        older = [names.argument(settings, each, places.get(each)) for each in ("reduce", "size_average")]
        given = names.argument(settings, "reduction", places.get("reduction"))
        if any(each is not None and names.constant(each.value) is not None for each in older):
            return UNKNOWN
        return names.constant(given.value) if given else "mean"

    def _is_other_mean(self, call: cst.Call) -> bool:
        """Whether a call surely averages a loss that compares otherwise than `input` with `target`."""
        name = self._facts.names.of(call.func) or ""
        if name:
            known = name.removeprefix(_FUNCTIONAL) in _OTHERS and name.startswith(_FUNCTIONAL)
            return (
                known and len([arg for arg in call.args if arg.keyword is None]) < 5 and self._reduction(call) == "mean"
            )
        made = self._facts.values.origins(call.func)
        return bool(made) and all(
            each.name.removeprefix("torch.nn.") in _OTHERS.values() and self._reduction(each.call) == "mean"
            for each in made
        )

    def is_mean(self, expression: cst.BaseExpression | None, depth: int = 0) -> bool:
        """Whether a value surely is a loss averaged over the batch, or a weighted sum of such losses."""
        if depth > _DEPTH:
            return False
        match expression:
            case cst.Name():
                found = self._facts.reaching.bindings(expression)
                return bool(found) and all(self._binds_mean(each, depth) for each in found)
            case cst.Attribute(attr=cst.Name(value="loss")):
                return self._is_transformers(expression.value)
            case cst.BinaryOperation(operator=cst.Add()):
                return self.is_mean(expression.left, depth + 1) and self.is_mean(expression.right, depth + 1)
            case cst.BinaryOperation(operator=cst.Multiply()):
                pairs = ((expression.left, expression.right), (expression.right, expression.left))
                return any(self.is_mean(value, depth + 1) and not self._may_scale(factor) for value, factor in pairs)
            case cst.Call():
                loss = self.of(expression)
                if loss is not None:
                    return self.reduction(loss) in ("mean", "batchmean")
                if self._is_other_mean(expression):
                    return True
                if self._facts.names.method(expression) == "mean" and not expression.args:
                    return True
                return all(self.is_mean(each, depth + 1) for each in self._facts.fact(Results).of(expression))
        return False

    def _binds_mean(self, binding: Binding, depth: int) -> bool:
        if binding.kind is not Kind.ASSIGN or binding.value is None:
            return False
        if not binding.path:
            return self.is_mean(binding.value, depth + 1)
        return all(self.is_mean(each, depth + 1) for each in self._facts.fact(Results).of(binding.value, binding.path))

    def _is_transformers(self, output: cst.BaseExpression) -> bool:
        """Whether a value is what a model of Transformers gives, whose `loss` is a mean."""
        sources = self._facts.reaching.sources(output)
        origins = [
            origin for each in sources if isinstance(each, cst.Call) for origin in self._facts.values.origins(each.func)
        ]
        return bool(origins) and all(each.name.startswith("transformers.") for each in origins)

    def _may_scale(self, factor: cst.BaseExpression) -> bool:
        """Whether a factor may be a division by the number of batches, or a batch's size: anything but numbers and plain
        hyperparameters.
        """
        tree = self._facts.tree
        names = tree.within(factor, cst.Name)
        held = [source for name in names for source in self._facts.reaching.sources(name)]
        parts = (factor, *(each for each in held if isinstance(each, (cst.Call, cst.BinaryOperation))))
        divides = any(
            isinstance(each.operator, cst.Divide) for one in parts for each in tree.within(one, cst.BinaryOperation)
        )
        named = any(part in name.value.lower() for name in names for part in _SCALING)
        return any(tree.within(one, cst.Call) for one in parts) or divides or named


def _gives_more(call: cst.Call) -> bool:
    """Whether a call gives more than the two values that a loss compares: it may overrule what was given before."""
    return len(call.args) > 2 or any(arg.keyword.value not in {"input", "target"} for arg in call.args if arg.keyword)
