from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.facts.lightning.training import ENTRY_POINTS
from lightlint.facts.releases.api import RemovedName, lightning_api
from lightlint.facts.releases.compat import removal_tier
from lightlint.facts.versions.versions import Version
from lightlint.fixes.edits import remove_argument, replace_argument_name
from lightlint.models.registry import is_lightning
from lightlint.values.training import Instance

if TYPE_CHECKING:
    from lightlint.engine.events import Called
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_CALLBACKS = "lightning.callbacks."
_CLI = "lightning.cli.LightningCLI"
# methods of a LightningModule that lost a parameter: its name, and its place where it was positional
_OF_MODULES = {"toggle_optimizer": ("optimizer_idx", 1), "untoggle_optimizer": ("optimizer_idx", None), "manual_backward": ("optimizer", 1)}  # fmt: skip


class LightningRemovedArg(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        for name, events in entry.calls.items():
            for event in events:
                owner = _called_owner(name, event)
                for keyword in event.given.keywords if owner else ():
                    removed = self._removed(owner, keyword)
                    if removed:
                        yield from self._fault(event, owner, keyword, removed.removed)
                yield from self._of_module(event)
        for (owner, argument), since in lightning_api().required_since.items():
            tier = removal_tier(self.facts.lightning, since)
            for event in entry.calls.get(_CALLBACKS + owner, ()) if tier and argument == "monitor" else ():
                if event.given.exact and not event.given.values() and not self.is_versioned(event):
                    message = f"`{owner}` requires `monitor` since Lightning {since.minor}"
                    yield Fault.of(event, f"{message} (target: {self.facts.lightning.version.minor})", tier=tier)

    def _of_module(self, event: Called) -> Iterator[Fault]:
        """What one of the module's own methods is given that it no longer takes."""
        if event.path not in _OF_MODULES or event.receiver is None or not is_lightning(event.receiver):
            return
        parameter, place = _OF_MODULES[event.path]
        given, since = event.argument(parameter, place), _lost(event.path, parameter)
        by_position = given is not None and parameter not in event.given.keywords
        if (
            given is None
            or since is None
            or (event.path == "manual_backward" and by_position and not _optimizes(given))
        ):
            return
        yield from self._fault(event, event.path, parameter, since)

    def _fault(self, event: Called, owner: str, argument: str, since: Version) -> Iterator[Fault]:
        target = self.facts.lightning
        tier = removal_tier(target, since)
        if tier and not self.is_versioned(event, "TypeError"):
            message = f"`{owner}` has no argument `{argument}` since Lightning {since.minor}"
            yield Fault.of(event, f"{message} (target: {target.version.minor})", tier=tier, argument=argument)

    def _removed(self, owner: str, keyword: str) -> RemovedName | None:
        api = lightning_api()
        if owner == "log":
            return api.log_kwargs_removed.get(keyword)
        entries = (*api.call_kwargs_removed, *api.callback_arguments_removed)
        return next((each for each in entries if each.owner == owner and each.name == keyword), None)

    def repair(self, node: cst.CSTNode, fault: Fault) -> Repair | None:
        if not isinstance(node, cst.Call):
            return None
        method = self.names.method(node) or ""
        if method in _OF_MODULES:
            parameter, place = _OF_MODULES[method]
            arg, since = self.names.argument(node, parameter, place), _lost(method, parameter)
            if arg is None or place is None or fault.argument != parameter:
                return None
            return Repair(f"drop `{parameter}`", remove_argument(self.code, node, arg), writes=f"lightning>={since}")
        owner = (self.names.of(node.func) or "").removeprefix(_CALLBACKS)
        given, removed = self.entry_of(node, fault.argument), None
        for each in (owner, method):
            removed = removed or self._removed(each, fault.argument)
        if removed is None or not isinstance(given, cst.Arg) or given.keyword is None:
            return None
        safe = removed.autofix == "safe" or removed.name in {"period", "every_n_val_epochs"}
        if not safe or not removed.replacement.isidentifier():
            return None
        draft = replace_argument_name(self.code, given, removed.replacement)
        return Repair(f"rename to `{removed.replacement}`", draft, writes="lightning>=1.4")  # which brought all of them


def _optimizes(value: Value) -> bool:
    """Whether a value is an optimizer."""
    return isinstance(value, Instance) and value.kind == "optimizer"


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
    """`fit`, `log`, `ModelCheckpoint`: what a call surely calls of Lightning, empty for all else."""
    if event.receiver is None:
        return "LightningCLI" if name == _CLI else name.removeprefix(_CALLBACKS) if name.startswith(_CALLBACKS) else ""
    if event.receiver.kind == "trainer":
        return event.path if event.path in ENTRY_POINTS else ""
    return "log" if event.path in {"log", "log_dict"} and is_lightning(event.receiver) else ""
