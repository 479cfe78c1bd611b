"""Runs of wandb and mlflow: which calls start one, and whether the processes of all ranks do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lightlint.checks.ranks.processes.file_write_on_every_rank.shared import hook_of, is_apart, joins, may_be_chosen
from lightlint.engine.events import Called
from lightlint.facts.ranks.world import Ranks

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Path
    from lightlint.facts.file import FileFacts

RUNS = frozenset(
    [
        "wandb.init",
        *(f"mlflow.{name}" for name in ("start_run", "log_metric", "log_metrics", "log_param", "log_params")),
    ]
)
_MEANT = {"group", "mode"}  # arguments of who means to have several runs, or to switch some off
_NAMING = ("name", "id", "project", "run_name", "run_id", "dir", "tags")
_SWITCHED = re.compile(r"WANDB_(?:MODE|DISABLED|RUN_GROUP)")


def starts_on_every_rank(facts: FileFacts, path: Path, run: Called) -> bool:
    """Whether a call that starts a run, the first on a path, does so on all ranks, tests for one of them aside: in a hook, or
    in a script that each rank runs from the top."""
    given = run.given
    earlier = (each for each in path.of(Called) if each.path in RUNS and each.time < run.time)
    if any(each.site != run.site for each in earlier) or given.keywords.keys() & _MEANT or not given.exact:
        return False
    if may_be_chosen(run.where) or _SWITCHED.search(facts.source.text):
        return False
    if any(is_apart(given.keywords[name]) for name in _NAMING if name in given.keywords):
        return False
    scripted = any(each.path == "lightning.Trainer" for each in path.of(Called))
    by_lightning = facts.world.lightning is Ranks.MANY and not facts.world.is_copied
    return (by_lightning and (scripted or bool(hook_of(run.where)))) or (facts.world.raw is Ranks.MANY and joins(path))
