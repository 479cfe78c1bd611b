"""How Lightning calls a hook in a given release: what it passes by position, what by name."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from lightlint.facts.lightning.hooks import STEPS, TRAINING_STEP, Owner
from lightlint.facts.lightning.overrides import Taken, class_api
from lightlint.facts.releases.api import Parameter, Signature
from lightlint.facts.versions.versions import Version

_TWO = Version("2.0")
_NOT_JUDGED = {"forward", "configure_callbacks", "state_dict", "load_state_dict", "manual_backward", "toggle_optimizer"}
_NOT_JUDGED |= {"untoggle_optimizer", "add_argparse_args", "from_datasets", "load_from_checkpoint"}
_BY_NAME = {
    "setup": {"stage"},
    "teardown": {"stage"},
    "configure_gradient_clipping": {"gradient_clip_val", "gradient_clip_algorithm"},
}


@dataclass(frozen=True, slots=True)
class Passed:
    """Arguments of a call: those surely passed by position, those it may pass besides, those passed by name.

    `gone` are names of arguments that older releases passed between or behind those that are left.
    """

    sure: tuple[str, ...]
    possible: tuple[str, ...]
    by_name: frozenset[str]
    unlimited: bool
    gone: frozenset[str] = frozenset()

    def missing(self, taken: Taken) -> list[str]:
        """Parameters that a method requires and no call passes."""
        if self.unlimited:
            return []
        free = [each for each in taken.positional if each.name.value not in self.by_name]
        given = (*self.sure, *self.possible)
        over = [each.name.value for each in free[len(given) :] if each.default is None]
        rest = self._left_over(free, over) if over else []
        if not self.sure:  # a step gets the index of the loader under that name only: 2.x looks for it
            wrong = [each for each, name in zip(free, given, strict=False) if name == "dataloader_idx"]
            rest += [each.name.value for each in wrong if each.name.value != "dataloader_idx" and each.default is None]
        only = [each.name.value for each in taken.keyword_only if each.default is None]
        return rest + [name for name in only if name not in self.by_name]

    def _left_over(self, free: list[cst.Param], over: list[str]) -> list[str]:
        """Of more required parameters than there are arguments those that none is meant for: by name, else the last."""
        required = [each.name.value for each in free if each.default is None]
        gone = [name for name in required if name in self.gone]
        strangers = [name for name in required if name not in {*self.sure, *self.possible}]
        if len(gone) >= len(over):
            return gone
        if self.sure and len(strangers) == len(over):
            return strangers
        last = [name for name in over if name not in gone]
        return gone + last[len(last) - (len(over) - len(gone)) :]

    def after(self, taken: Taken, dropped: list[str]) -> bool:
        """Whether a method without some of its parameters gets each of the others as what it is named for."""
        names = [each.name.value for each in taken.positional]
        given = (*self.sure, *self.possible)
        first = min(map(names.index, dropped), default=len(names))
        left = [name for name in names if name not in dropped]
        moved = zip(left[first:], given[first:], strict=False)
        return len(left) >= len(self.sure) and all(name == argument for name, argument in moved)

    def shifted(self, taken: Taken) -> tuple[str, str] | None:
        """A parameter whose argument no longer comes, and what it gets instead: what one behind it is named for."""
        free = [each.name.value for each in taken.positional if each.name.value not in self.by_name]
        for index, (name, argument) in enumerate(zip(free, self.sure, strict=False)):
            if name != argument:
                return (name, argument) if name in self.gone and argument in free[index + 1 :] else None
        return None

    def refused(self, taken: Taken) -> list[str]:
        """What every call passes and a method does not take."""
        free = [each for each in taken.positional if each.name.value not in self.by_name]
        over = [] if taken.takes_rest else list(self.sure[len(free) :])
        names = {each.name.value for each in (*taken.positional, *taken.keyword_only)}
        return over + sorted(self.by_name - names if not taken.takes_keywords else ())


def passed(owner: Owner, hook: str, version: Version) -> Passed | None:
    """How a release calls a hook, None where it has none or that is not known exactly."""
    if hook in STEPS:
        return _step(owner, hook, version)
    parameters = class_api(owner).signature(hook, version)
    if parameters is None or hook in _NOT_JUDGED:
        return None
    by_name = _BY_NAME.get(hook, set()) if version >= _TWO else set()
    sure = [each.name for each in parameters if each.required and each.name not in by_name]
    possible = [each.name for each in parameters if not each.required and not each.kind and each.name not in by_name]
    if hook == "optimizer_step" and version >= _TWO:
        sure, possible = [*sure, *possible], []
    if version < _TWO and by_name == set() and hook in _BY_NAME:
        sure, possible = [], [*sure, *possible]
    unlimited = any(each.kind for each in parameters) and hook != "backward"
    gone = _gone(class_api(owner).signatures[hook], parameters)
    return Passed(tuple(sure), tuple(possible), frozenset(by_name), unlimited, gone)


def passed_since(owner: Owner, hook: str, version: Version) -> Version:
    """The first release that calls a hook as a later one does."""
    if hook in STEPS:
        return _TWO
    since = [each.since for each in class_api(owner).signatures.get(hook, ()) if each.since <= version]
    return max([*since, *[_TWO] * (version >= _TWO and hook in _BY_NAME)], default=version)


def _gone(history: tuple[Signature, ...], now: tuple[Parameter, ...]) -> frozenset[str]:
    """The names that older releases have between or behind those of this one; a name that another replaced is none."""
    left = [each.name for each in now]
    lists = [[each.name for each in signature.parameters] for signature in history]
    longer = [names for names in lists if [name for name in names if name in left] == left]
    return frozenset(name for names in longer for name in names if name not in left)


def _step(owner: Owner, hook: str, version: Version) -> Passed | None:
    """Steps get what they take of batch, its index and, if several loaders are evaluated, `dataloader_idx`."""
    if owner is not Owner.MODULE or version < _TWO:
        return None
    last = () if hook == TRAINING_STEP else ("dataloader_idx",)
    return Passed((), ("batch", "batch_idx", *last), frozenset(), False)
