from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.check import Check, Fault, Repair
from lightlint.engine.events import Called, LoadedUsed
from lightlint.explore.questions.certain import anyhow
from lightlint.facts.code.unknown import UNKNOWN
from lightlint.facts.objects.checkpoints import LOAD
from lightlint.facts.project.mentions import is_mentioned
from lightlint.facts.releases.compat import is_versioned
from lightlint.facts.versions.versions import Version
from lightlint.finding import Applicability, Tier
from lightlint.fixes.edits import insert_argument

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry

_CHANGED = Version("2.6")  # weights_only=True became the default
_ADDED = Version("1.13")
_ALLOWS = {"add_safe_globals", "safe_globals"}
_OWN = {"best_model_path", "last_model_path"}
_OF_MODULES = {
    "eval", "train", "forward", "parameters", "named_parameters", "modules", "named_modules", "children", "state_dict",
    "load_state_dict", "zero_grad",
}  # fmt: skip
_SETTINGS = re.compile(r"(?:\w+_)?(?:args?|opts?|options|config|cfg|conf|hparams|settings)", re.IGNORECASE)
_PLAIN = {name for kind in (dict, list, str, int, float) for name in dir(kind)}


_PROGRAMS = ("torch.optim", "optim.", "DataLoader", "ArgumentParser")  # words of files that train or evaluate


class LoadWeightsOnlyUnset(Check):
    def visit_Call(self, call: cst.Call) -> None:
        if self.names.call(call) != LOAD or self.names.has_star(call) or self._is_decided(call):
            return
        target, use = self.facts.torch, self._pickled(call)
        if use and target.may_be_at_least(_CHANGED):
            self.report(
                call,
                f"`torch.load` of torch 2.6 and newer refuses {use}",
                tier=self._tier(call),
                repair=self._repair(call, "False"),
            )
        elif target.may_be_below(_CHANGED) and not self._is_in_memory(call) and self._can_be_told(call):
            self.report(
                call,
                "`torch.load` before torch 2.6 runs whatever code the file holds, which matters for files from others",
                tier=Tier.NOTE,
                repair=None if use else self._repair(call, "True"),
            )

    def _tier(self, load: cst.CSTNode | None) -> Tier | None:
        if load is not None and self._is_left_over(load):
            return Tier.NOTE
        return None if self.facts.torch.surely_at_least(_CHANGED) else Tier.WARNING

    def _is_left_over(self, load: cst.CSTNode) -> bool:
        """Whether a script has the load in a function that no code of the project names."""
        function = self.tree.function(load)
        if function is None or function.name.value.startswith("__") or "__main__" not in self.facts.source.text:
            return False
        return not is_mentioned(self.facts.project, self.facts.source, function.name.value)

    def _can_be_told(self, call: cst.Call) -> bool:
        """Whether the loading of a file from elsewhere surely needs `weights_only`, and torch may know it."""
        target = self.facts.torch
        return target.may_be_at_least(_ADDED) and not target.hearsay and not self._is_own(call)

    def _is_decided(self, call: cst.Call) -> bool:
        """Whether the call or the file says what may be loaded, or is ready for a refusal."""
        if any(self.names.argument(call, *each) for each in (("weights_only",), ("pickle_module", 2))):
            return True
        return any(name.value in _ALLOWS for name in self.tree.all(cst.Name)) or is_versioned(self.facts, call)

    def _pickled(self, call: cst.Call) -> str:
        """What in the file surely is more than tensors and plain values, by what is done with it; else empty."""
        for node, keys in self.facts.checkpoints.uses(call):
            what = f'what lies under "{keys[-1]}"' if keys else "this file"
            if isinstance(node, cst.Call):
                return f"{what}: it is called, so it is a whole module or function"
            name = node.attr.value
            if name in _OF_MODULES:
                return f"{what}: `.{name}` is taken of it, so it is a whole module"
            if keys and _SETTINGS.fullmatch(keys[-1]) and name not in _PLAIN:
                return f"{what}: `.{name}` is taken of it, so it is no plain dict"
        return ""

    def _is_in_memory(self, call: cst.Call) -> bool:
        """Whether what is loaded was written by this program: a buffer, as for copies."""
        made = self.facts.workers.made(call.args[0].value) if call.args else None
        return self.names.call(made) == "io.BytesIO"

    def _is_own(self, call: cst.Call) -> bool:
        """Whether the file surely is one that this process has written itself: its Trainer's best, or what it saved just before."""
        if not call.args:
            return False
        sources = self.facts.reaching.sources(call.args[0].value)
        if all(isinstance(each, cst.Attribute) and each.attr.value in _OWN for each in sources):
            return True
        if any(_is_own_path(entry, event) for entry, _, event in self.happened(call, Called)):
            return True
        path = self.names.key(call.args[0].value) or self.names.constant(call.args[0].value)
        saves = [
            each for each in self.tree.own(self.tree.owner(call), cst.Call) if self.names.call(each) == "torch.save"
        ]
        written = [self.names.argument(each, "f", 1) for each in saves if self.tree.order(each) < self.tree.order(call)]
        given = [each.value for each in written if each is not None]
        return path is not UNKNOWN and path in [self.names.key(each) or self.names.constant(each) for each in given]

    def _repair(self, call: cst.Call, value: str) -> Repair | None:
        draft = insert_argument(self.code, call, f"weights_only={value}")
        return Repair(f"say `weights_only={value}`", draft, Applicability.UNSAFE, f"torch>={_ADDED}")

    def wants_users(self) -> tuple[str, ...]:
        """Where a function of this file loads: who calls it tells what is asked of what it gives."""
        helpers = (each for each in self.names.called(LOAD) if self.tree.function(each) is not None)
        return _PROGRAMS if any(not self._is_decided(each) for each in helpers) else ()

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Files of which something is asked that only a pickled object has."""
        target = self.facts.torch
        for event in anyhow(entry.of(LoadedUsed)) if target.may_be_at_least(_CHANGED) else ():
            given, what = event.load.given, _asked(event)
            decided = given.get(-1, "weights_only") or given.get(2, "pickle_module") or not given.exact
            if what and not decided and not self._is_ready(event):
                message = f"`torch.load` of torch 2.6 and newer refuses {what}"
                yield Fault.at(event.load, message, tier=self._tier(self.node_of(event.load.site)))

    def _is_ready(self, event: LoadedUsed) -> bool:
        """Whether the file says what may be loaded, or is ready for a refusal; of another file, whether it may."""
        span = self.facts.rehearsed.span(event.load.site)
        if span is None:
            text = self.facts.project.text(Path(event.load.site[0]))
            allows = any(name.value in _ALLOWS for name in self.tree.all(cst.Name))
            return allows or any(word in text for word in (*_ALLOWS, "except"))
        nodes = [each for each in self.tree.all(cst.Call) if self.facts.positions.span(each) == span]
        return not nodes or any(map(self._is_decided, nodes))


def _is_own_path(entry: Entry, event: Called) -> bool:
    """Whether a load is of the Trainer's best file, or of one that the program has saved before."""
    path = event.argument("f", 0)
    if path is None or path.key is None:
        return False
    saves = [each.argument("f", 1) for each in entry.calls.get("torch.save", ()) if each.time < event.time]
    return getattr(path, "hint", "") in _OWN or any(each is not None and each.key == path.key for each in saves)


def _asked(event: LoadedUsed) -> str:
    """What in a file surely is more than tensors and plain values, by what is asked of it; else empty."""
    key, name = event.key, event.asked
    what = f'what lies under "{key}"' if key is not None else "this file"
    if name == "()":
        return f"{what}: it is called, so it is a whole module or function"
    if name in _OF_MODULES:
        return f"{what}: `.{name}` is taken of it, so it is a whole module"
    settings = isinstance(key, str) and _SETTINGS.fullmatch(key) and name not in _PLAIN
    return f"{what}: `.{name}` is taken of it, so it is no plain dict" if settings else ""
