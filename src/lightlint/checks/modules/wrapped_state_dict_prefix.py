from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.bindings import Kind
from lightlint.facts.checkpoints import SAVE
from lightlint.finding import Applicability
from lightlint.fixes.edits import replace

_STRIPS = {"consume_prefix_in_state_dict_if_present", "removeprefix", "get_model_state_dict", "set_model_state_dict"}


class WrappedStateDictPrefix(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != SAVE or not call.args or self._strips():
            return
        for keys, state in self._states(call.args[0].value):
            model = state.func.value if isinstance(state.func, cst.Attribute) else None
            prefix = self.facts.prefixes.of(model)
            load = self._loaded_bare(keys) if prefix and self._is_only_kind(keys, prefix) else None
            if not prefix or load is None or model is None:
                continue
            row = self.facts.source.locate(self.facts.span(load)[0]).row
            effect = "loads none of them" if self._is_lax(load) else "raises RuntimeError"
            text, inner = self.code.text_of(model), prefix.rpartition(".")[0]
            self.report(
                state,
                f"the keys that `{text}` saves start with `{prefix}`: the load into the bare model in line {row} {effect}",
                repair=Repair(
                    "save the model inside", replace(self.code, model, f"{text}.{inner}"), Applicability.UNSAFE
                ),
            )

    def _strips(self) -> bool:
        """Whether the file knows of the prefix."""
        texts = (self.names.constant(each) for each in self.tree.all(cst.SimpleString))
        known = any(isinstance(text, str) and ("module" in text or "_orig_mod" in text) for text in texts)
        return known or any(name.value in _STRIPS for name in self.tree.all(cst.Name))

    def _states(self, value: cst.BaseExpression) -> Iterator[tuple[tuple[str, ...], cst.Call]]:
        """The `state_dict()` calls whose result a checkpoint holds, with the key it lies under."""
        if isinstance(value, cst.Name):
            found = self.names.bindings.lookup(value)
            only = found[0] if len(found) == 1 and found[0].kind is Kind.ASSIGN and not found[0].path else None
            value = only.value if only is not None and only.value is not None else value
        parts: list[tuple[tuple[str, ...], cst.BaseExpression]] = [((), value)]
        if isinstance(value, cst.Dict):
            keyed = [(self.names.constant(e.key), e.value) for e in value.elements if isinstance(e, cst.DictElement)]
            parts = [((key,), part) for key, part in keyed if isinstance(key, str)]
        elif isinstance(value, cst.Call) and self.names.call(value) == "builtins.dict":
            parts = [((arg.keyword.value,), arg.value) for arg in value.args if arg.keyword is not None]
        for keys, part in parts:
            if isinstance(part, cst.Call) and self.names.method(part) == "state_dict" and not part.args:
                yield keys, part

    def _loaded_bare(self, keys: tuple[str, ...]) -> cst.Call | None:
        """The call that loads what was saved under some keys into a model without a prefix."""
        for call in self.tree.all(cst.Call):
            if (
                self.names.method(call) != "load_state_dict"
                or not call.args
                or not isinstance(call.func, cst.Attribute)
            ):
                continue
            held = self.facts.checkpoints.held(call.args[0].value)
            if held is not None and held[1] == keys and self.facts.prefixes.of(call.func.value) == "":
                return call
        return None

    def _is_only_kind(self, keys: tuple[str, ...], prefix: str) -> bool:
        """Whether all that the file saves under some keys has the prefix, so that any load of them meets it."""
        saves = [each for each in self.tree.all(cst.Call) if self.names.call(each) == SAVE and each.args]
        states = [state for save in saves for under, state in self._states(save.args[0].value) if under == keys]
        holders = [state.func.value for state in states if isinstance(state.func, cst.Attribute)]
        return all(self.facts.prefixes.of(holder) == prefix for holder in holders)

    def _is_lax(self, load: cst.Call) -> bool:
        strict = self.names.argument(load, "strict", 1)
        return strict is not None and self.names.constant(strict.value) is False
