"""Models that Transformers' `from_pretrained` gives: in eval mode, which Lightning keeps from 2.2 on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.bindings import Kind
from lightlint.facts.classes import MODULE, NN_MODULE
from lightlint.facts.hooks import TRAINING_STEP
from lightlint.facts.names import UNKNOWN

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_GIVES_MODEL = re.compile(
    r"transformers\.(?:\w+\.)*(?!TF|Flax)(?:AutoModel\w*|\w+Model|\w+For[A-Z]\w+)\.from_pretrained$"
)
# checkpoints whose configuration has dropout
_WITH_DROPOUT = re.compile(
    r"(?:google-bert/|distilbert/|FacebookAI/|google/|openai-community/|google-t5/|microsoft/|facebook/)?"
    r"(?:(?:distil|xlm-)?(?:bert|roberta)-(?:base|large)|electra-(?:small|base|large)-|gpt2|t5-(?:small|base|large)|"
    r"bart-(?:base|large)|deberta-(?:base|large|v3-))"
)
_MAKING = {"__init__", "configure_model"}
_PARAMETERS = {"parameters", "named_parameters"}
_OF_OTHERS = re.compile(r"\.train\(|def train\b|requires_grad|[Ff]reez|Finetuning|get_peft_model|\.training\b")
_OWN = {"eval", "no_grad", "inference_mode", "set_grad_enabled", "detach", "apply", "modules"}


class Pretrained:
    """The pretrained models of one file."""

    def __init__(self, facts: FileFacts) -> None:
        self._facts = facts
        self._tree = facts.tree
        self._names = facts.names

    def is_trained_in_eval(self, call: cst.Call) -> bool:
        """Whether a call gives a part of a module, with dropout, that a LightningModule trains whole, in eval mode."""
        statement = self._tree.parent(call)
        function = self._tree.function(call)
        if not _GIVES_MODEL.match(self._names.call(call) or "") or not isinstance(statement, cst.Assign):
            return False
        target = statement.targets[0].target
        node = self._facts.classes.self_class(target.value) if isinstance(target, cst.Attribute) else None
        if node is None or function is None or function.name.value not in _MAKING or not self._has_dropout(call):
            return False
        trained = list(self._trained_by(node))
        families = [self._facts.optimization.family(each) for each in (node, *trained)]
        return bool(trained) and all(families) and not self._is_touched(*{each for line in families for each in line})

    def _has_dropout(self, call: cst.Call) -> bool:
        """Whether the model surely drops something when it is trained: an argument says so, or the checkpoint is known."""
        given = [arg for arg in call.args if arg.keyword is not None and "drop" in arg.keyword.value]
        if given:
            return any(self._is_rate(arg.value) for arg in given)
        name = self._names.constant(call.args[0].value) if call.args else None
        return isinstance(name, str) and _WITH_DROPOUT.match(name) is not None and not self._names.has_star(call)

    def _is_rate(self, value: cst.BaseExpression) -> bool:
        """Whether a value may be more than 0: no constant says that it is not."""
        known = self._names.constant(value)
        bound = self._names.bindings.lookup(value) if isinstance(value, cst.Name) else []
        if len(bound) == 1 and bound[0].kind is Kind.PARAMETER and bound[0].value is not None:
            known = self._names.constant(bound[0].value)
        return known is UNKNOWN or bool(known)

    def _trained_by(self, node: cst.ClassDef) -> Iterator[cst.ClassDef]:
        """The LightningModules that are, or hold, a module, and optimize all its parameters."""
        for each in self._tree.all(cst.ClassDef):
            if not self._facts.classes.is_a(each, MODULE) or not self._facts.classes.method(each, TRAINING_STEP):
                continue
            held = {"self"} if node in self._facts.classes.line(each) else set(self._holding(each, node))
            calls = self._facts.optimization.calls(each, "configure_optimizers")
            taken = [call.func for call in calls if self._names.method(call) in _PARAMETERS]
            keys = {self._names.key(func.value) for func in taken if isinstance(func, cst.Attribute)}
            own = [] if "self" not in held else [key for key in keys if key.startswith("self.")]
            if held and (keys & {*held, "self", "self.trainer.model", *self._parts(node, own)}):
                yield each

    def _parts(self, node: cst.ClassDef, keys: list[str]) -> Iterator[str]:
        """The attributes, of those with parameters that are optimized, which hold a pretrained model."""
        for key in keys:
            values = self._facts.classes.attribute_values(node, key.removeprefix("self."))
            if any(_GIVES_MODEL.match(self._names.call(each) or "") for each in values):
                yield key

    def _holding(self, outer: cst.ClassDef, node: cst.ClassDef) -> Iterator[str]:
        """The attributes in which a LightningModule holds a module of this file."""
        if not self._facts.classes.is_a(node, NN_MODULE):
            return
        for assign in self._tree.within(outer, cst.Assign):
            key = self._names.key(assign.targets[0].target)
            origins = self._facts.values.origins(assign.value) if key.startswith("self.") else ()
            if any(origin.name == self._names.defined(node) for origin in origins):
                yield key

    def _is_touched(self, *nodes: cst.ClassDef) -> bool:
        """Whether something sets modes, or leaves the model as it is: in sight, or in a file that uses this one."""
        project, path = self._facts.project, self._facts.path
        texts = [
            self._facts.source.text,
            *(project.text(each) for each in project.users(path, "Trainer", "Fabric", "LightningCLI")),
        ]
        spelled = {name.value for node in nodes for name in self._tree.within(node, cst.Name)}
        return bool(spelled & _OWN) or any(map(_OF_OTHERS.search, texts))
