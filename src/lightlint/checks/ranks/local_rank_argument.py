from __future__ import annotations

import re

import libcst as cst

from lightlint.check import Check

_SPELLS_IT_OTHERWISE = "2.0"  # before, `torch.distributed.launch` gives the option as it is written
_FLAGS = {"--local_rank", "--local-rank"}
# words of launchers that pass the option, and of programs that read the variable or set the attribute
_ELSEWHERE = re.compile(
    r"LOCAL_RANK|deepspeed|mp\.spawn|multiprocessing|torch\.distributed\.launch|SLURM_|accelerate|horovod"
)


class LocalRankArgument(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.method(call) != "add_argument" or not self.facts.torch.may_be_at_least(_SPELLS_IT_OTHERWISE):
            return
        flags = {self.names.constant(arg.value) for arg in call.args if arg.keyword is None and not arg.star}
        if not flags & _FLAGS or _ELSEWHERE.search(self.facts.source.text) or self._is_set():
            return
        used = [each for each in self.tree.all(cst.Attribute) if each.attr.value == "local_rank"]
        chosen = next((each for each in used if self._chooses_device(each)), None)
        if chosen is None or not self._starts_group():
            return
        if flags >= _FLAGS:
            message = "`torchrun` gives no `--local_rank`: every process it starts keeps the default and its device"
        else:
            message = (
                "`torchrun` gives no `--local_rank`, and `torch.distributed.launch` of torch 2 spells it the other way"
            )
            if "--local-rank" in flags:
                message = "`torchrun` gives no `--local-rank`: every process it starts keeps the default and its device"
        self.report(call, message)

    def _starts_group(self) -> bool:
        return any(self.names.call(each) == "torch.distributed.init_process_group" for each in self.tree.all(cst.Call))

    def _chooses_device(self, attribute: cst.Attribute) -> bool:
        """Whether a device is chosen by the option."""
        for above in self.tree.ancestors(attribute):
            if isinstance(above, cst.Call):
                return self.names.call(above) in {"torch.cuda.set_device", "torch.device"} or self.names.method(
                    above
                ) in {
                    "cuda",
                    "to",
                }
            if isinstance(above, cst.Assign):
                return self._is_passed_on(above)
            if isinstance(above, cst.BaseStatement):
                return False
        return False

    def _is_passed_on(self, assign: cst.Assign) -> bool:
        """Whether the name that gets the option chooses the device."""
        key = self.names.key(assign.targets[0].target)
        calls = [each for each in self.tree.all(cst.Call) if self.names.call(each) == "torch.cuda.set_device"]
        return bool(key) and any(self.names.key(arg.value) == key for each in calls for arg in each.args)

    def _is_set(self) -> bool:
        """Whether the program gives the option a value itself."""
        targets = [each.target for each in self.tree.all(cst.AssignTarget)]
        return any(isinstance(each, cst.Attribute) and each.attr.value == "local_rank" for each in targets)
