from __future__ import annotations

import libcst as cst

from lightlint.check import Check, Repair
from lightlint.facts.compat import is_versioned
from lightlint.facts.torch_api import vision_weights
from lightlint.fixes.draft import Draft
from lightlint.fixes.edits import join, replace, replace_argument_name

_SINCE = "1.12"  # the torch of torchvision 0.13, which brought `weights`
_SUCCESSORS = {"pretrained": "weights", "pretrained_backbone": "weights_backbone"}


class TorchvisionPretrainedArg(Check):
    def visit_Call(self, call: cst.Call) -> None:
        function = self.names.of(call.func) or ""
        if vision_weights(function, "pretrained") is None or not self.facts.torch.may_be_at_least(_SINCE):
            return
        for name, successor in _SUCCESSORS.items():
            arg = self._given(call, name)
            if arg is None or is_versioned(self.facts, call):
                continue
            weights = vision_weights(function, name)
            message = f"`{name}` of `{function.rpartition('.')[2]}` is deprecated since torchvision 0.13"
            self.report(arg, message, repair=self._repair(arg, successor, weights))

    def _given(self, call: cst.Call, name: str) -> cst.Arg | None:
        """The argument by keyword, or `pretrained` as a plain bool in the first place, where `weights` stands now."""
        arg = self.names.argument(call, name, 0 if name == "pretrained" else None)
        if arg is None or arg.keyword is not None:
            return arg
        return arg if isinstance(self.names.constant(arg.value), bool) else None

    def _repair(self, arg: cst.Arg, successor: str, weights: str | None) -> Repair | None:
        given = self.names.constant(arg.value)
        if not isinstance(given, bool) or weights is None:
            return None
        text = f'"{weights}"' if given else "None"
        return Repair(f"write `{successor}={text}`", self._draft(arg, successor, text), writes=f"torch>={_SINCE}")

    def _draft(self, arg: cst.Arg, successor: str, text: str) -> Draft | None:
        if arg.keyword is not None:
            return join(replace_argument_name(self.code, arg, successor), replace(self.code, arg.value, text))
        call = self.tree.parent(arg)
        alone = isinstance(call, cst.Call) and all(each is arg or each.keyword for each in call.args)
        return replace(self.code, arg.value, text) if alone else None
