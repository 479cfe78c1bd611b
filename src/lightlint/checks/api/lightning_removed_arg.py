from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.api import RemovedName, lightning_api
from lightlint.facts.classes import MODULE
from lightlint.facts.compat import is_versioned, removal_tier
from lightlint.facts.training import ENTRY_POINTS
from lightlint.facts.versions import Version
from lightlint.fixes.edits import remove_argument, replace_argument_name
from lightlint.models.registry import is_lightning

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry

_CALLBACKS = "lightning.callbacks."
_CLI = "lightning.cli.LightningCLI"
# methods of a LightningModule that lost a parameter: its name, and its place where it was positional
_OF_MODULES = {"toggle_optimizer": ("optimizer_idx", 1), "untoggle_optimizer": ("optimizer_idx", None), "manual_backward": ("optimizer", 1)}  # fmt: skip


class LightningRemovedArg(Check):
    def visit_Call(self, call: cst.Call) -> None:
        self._judge_own(call)
        owner = self._owner(call)
        if owner is None or is_versioned(self.facts, call):
            return
        target = self.facts.lightning.version.minor
        for arg in call.args:
            removed = self._removed(owner, arg.keyword.value) if arg.keyword else None
            tier = removal_tier(self.facts.lightning, removed.removed) if removed else None
            if removed and tier:
                since = removed.removed.minor
                message = f"`{owner}` has no argument `{removed.name}` since Lightning {since} (target: {target})"
                self.report(arg, message, tier=tier, repair=self._repair(arg, removed))
        required = lightning_api().required_since.get((owner, "monitor"))
        if required and not call.args and (tier := removal_tier(self.facts.lightning, required)):
            message = f"`{owner}` requires `monitor` since Lightning {required.minor} (target: {target})"
            self.report(call, message, tier=tier)

    def _judge_own(self, call: cst.Call) -> None:
        """Report what a call of one of the module's own methods gives that the method no longer takes."""
        func, method = call.func, self.names.method(call)
        if method not in _OF_MODULES or not isinstance(func, cst.Attribute) or not self.classes.is_self(func.value):
            return
        node = self.tree.enclosing_class(call)
        if node is None or not self.classes.is_a(node, MODULE) or self.classes.has_method(node, method):
            return
        parameter, place = _OF_MODULES[method]
        arg, since = self.names.argument(call, parameter, place), _lost(method, parameter)
        tier = removal_tier(self.facts.lightning, since) if arg and since else None
        if arg is None or since is None or tier is None or is_versioned(self.facts, call):
            return
        if method == "manual_backward" and arg.keyword is None and not self._is_optimizer(arg.value):
            return
        message = f"`{method}` has no argument `{parameter}` since Lightning {since.minor}"
        repair = (
            Repair(f"drop `{parameter}`", remove_argument(self.code, call, arg), writes=f"lightning>={since}")
            if place
            else None
        )
        self.report(arg, f"{message} (target: {self.facts.lightning.version.minor})", tier=tier, repair=repair)

    def _is_optimizer(self, value: cst.BaseExpression) -> bool:
        return self.values.is_optimizer(value) or self.facts.optimization.from_optimizers(value)

    def _owner(self, call: cst.Call) -> str | None:
        """`fit`, `log`, `ModelCheckpoint`: what a call surely calls of Lightning, None for all else."""
        name = self.names.of(call.func) or ""
        if name.startswith(_CALLBACKS):
            return name.removeprefix(_CALLBACKS)
        if name == _CLI:
            return "LightningCLI"
        method = self.names.method(call)
        if method in ENTRY_POINTS and any(run.call is call for run in self.facts.training.runs):
            return method
        return "log" if method in {"log", "log_dict"} and self.facts.logs.is_log(call) else None

    def _removed(self, owner: str, keyword: str) -> RemovedName | None:
        api = lightning_api()
        if owner == "log":
            return api.log_kwargs_removed.get(keyword)
        entries = (*api.call_kwargs_removed, *api.callback_arguments_removed)
        return next((each for each in entries if each.owner == owner and each.name == keyword), None)

    def _repair(self, arg: cst.Arg, removed: RemovedName) -> Repair | None:
        safe = removed.autofix == "safe" or removed.name in {"period", "every_n_val_epochs"}
        if not safe or not removed.replacement.isidentifier():
            return None
        draft = replace_argument_name(self.code, arg, removed.replacement)
        return Repair(f"rename to `{removed.replacement}`", draft, writes="lightning>=1.4")  # which brought all of them

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        target = self.facts.lightning
        for name, events in entry.calls.items():
            for event in events:
                owner = _called_owner(name, event)
                for keyword in event.given.keywords if owner else ():
                    removed = self._removed(owner, keyword)
                    tier = removal_tier(target, removed.removed) if removed else None
                    if removed and tier and not self.is_versioned(event):
                        since = removed.removed.minor
                        message = f"`{owner}` has no argument `{keyword}` since Lightning {since} (target: {target.version.minor})"
                        yield Fault.of(event, message, tier=tier)


def _lost(method: str, parameter: str) -> Version | None:
    """The release since which a method of a LightningModule has no such parameter."""
    history = lightning_api().lightning_module.signatures.get(method, ())
    had = False
    for signature in history:
        has = any(each.name == parameter for each in signature.parameters)
        if had and not has:
            return signature.since
        had = has
    return None


def _called_owner(name: str, event: Called) -> str:
    """As `_owner`, of a rehearsed call; empty for all else."""
    if event.receiver is None:
        return "LightningCLI" if name == _CLI else name.removeprefix(_CALLBACKS) if name.startswith(_CALLBACKS) else ""
    if event.receiver.kind == "trainer":
        return event.path if event.path in ENTRY_POINTS else ""
    return "log" if event.path in {"log", "log_dict"} and is_lightning(event.receiver) else ""
