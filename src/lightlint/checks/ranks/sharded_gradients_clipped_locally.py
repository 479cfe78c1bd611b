from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check

_CLIPS = {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm"}
# words of a test that is about the model's kind
_OF_KIND = re.compile(r"fsdp|shard|hasattr|isinstance|^type$", re.I)
# words of a test that may tell a run with FSDP from one without
_TELLS = re.compile(r"distributed|ddp|parallel|world|strategy|engine|single", re.I)


class ShardedGradientsClippedLocally(Check):
    def visit_Call(self, call: cst.Call) -> None:
        name = self.names.call(call)
        given = self.names.argument(call, "parameters", 0) if name in _CLIPS else None
        model = self.facts.sharded.drawn_from(given.value) if given is not None else None
        if model is None or not self._is_sharded(model, call) or self._is_summoned(call):
            return
        spelled = self.code.text_of(model)
        self.report(call, f"each rank clips by the norm of its own share of the gradients, for FSDP shards `{spelled}`")

    def _is_sharded(self, model: cst.BaseExpression, call: cst.Call) -> bool:
        """Whether a model is an FSDP model where a call clips it: on every way, or on some and nothing tells them apart."""
        wraps = self.facts.sharded.wraps(model)
        known = [each for each in wraps if each is not None]
        if not known or not all(map(self.facts.sharded.shards, known)):
            return False
        asked = [name.value for test, _ in self.facts.conditions(call) for name in self.tree.within(test, cst.Name)]
        if any(map(_OF_KIND.search, asked)):
            return False
        if len(known) == len(wraps):
            return True
        return not self._clips_otherwise() and not self._may_tell_apart(asked, known)

    def _clips_otherwise(self) -> bool:
        """Whether the file also clips by a model's own method, which may be for the sharded one."""
        calls = self.tree.all(cst.Call)
        return any(
            self.names.method(each) == "clip_grad_norm_" and self.names.call(each) not in _CLIPS for each in calls
        )

    def _may_tell_apart(self, asked: list[str], wraps: list[cst.Call]) -> bool:
        """Whether a test of some words may be the one that decides on the wrapping."""
        deciding = [test for wrap in wraps for test, _ in self.facts.conditions(wrap)]
        words = {name.value for test in deciding for name in self.tree.within(test, cst.Name)} - {"self", "args", "cfg"}
        return any(word in words or _TELLS.search(word) for word in asked)

    def _is_summoned(self, call: cst.Call) -> bool:
        """Whether the whole parameters and gradients are there: in a block of `summon_full_params`."""
        blocks = [each for each in self.tree.ancestors(call) if isinstance(each, cst.With)]
        return any(self.names.method(item.item) == "summon_full_params" for block in blocks for item in block.items)
