"""Runs of wandb and mlflow: which calls start one, and whether the processes of all ranks do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from lightlint.facts.code.names import Names
from lightlint.facts.lightning.hooks import ONCE_PER_NODE
from lightlint.facts.ranks.world import Ranks

if TYPE_CHECKING:
    from lightlint.facts.file import FileFacts

_RUNS = {
    "wandb.init",
    *(f"mlflow.{name}" for name in ("start_run", "log_metric", "log_metrics", "log_param", "log_params")),
}
_MEANT = {"group", "mode"}  # arguments of who means to have several runs, or to switch some off
_NAMING = {"name", "id", "project", "run_name", "run_id", "dir", "tags"}
_SWITCHED = re.compile(r"WANDB_(?:MODE|DISABLED|RUN_GROUP)")


def starts_run(names: Names, call: cst.Call) -> bool:
    """Whether a call starts a run of wandb, or of mlflow where there is none yet."""
    return names.call(call) in _RUNS


def starts_on_every_rank(facts: FileFacts, call: cst.Call) -> bool:
    """Whether a call that starts a run, the first of its file, surely does so on all ranks, tests for one of them aside:
    in a hook, or in a script that each rank runs from the top."""
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    others = [c for c in facts.tree.all(cst.Call) if starts_run(facts.names, c) and not facts.guards.guarded(c)]
    is_first = not any(facts.tree.order(each) < facts.tree.order(call) for each in others)
    return (
        is_first
        and not given.keys() & _MEANT
        and not facts.names.has_star(call)
        and (_by_lightning(facts, call) or _by_hand(facts, call, given))
    )


def _by_lightning(facts: FileFacts, call: cst.Call) -> bool:
    world, hooks = facts.world, facts.hooks.around(call)
    hooked = bool(hooks) and not any(hook.name in ONCE_PER_NODE for hook in hooks)
    scripted = any(facts.names.call(each) == "lightning.Trainer" for each in facts.tree.all(cst.Call))
    return world.lightning is Ranks.MANY and not world.is_copied and (scripted or hooked)


def _by_hand(facts: FileFacts, call: cst.Call, given: dict[str, cst.BaseExpression]) -> bool:
    """Whether the processes of a plain script all start a run, none of which is named after its rank or switched off."""
    named = [value for name, value in given.items() if name in _NAMING]
    return (
        facts.world.raw is Ranks.MANY
        and facts.processes.per_rank(call)
        and not any(map(facts.processes.may_differ, named))
        and not _SWITCHED.search(facts.source.text)
    )
