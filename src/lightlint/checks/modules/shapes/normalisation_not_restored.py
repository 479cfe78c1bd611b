from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Called, CalledUnknown
from lightlint.explore.questions.queries import beside
from lightlint.values.core import Unknown, is_constant

if TYPE_CHECKING:
    from lightlint.explore.rehearsals import Entry
    from lightlint.values.core import Value

_LOAD = re.compile(r"(?:stable_baselines3|sb3_contrib)\.(?:\w+\.)*[A-Z]\w*\.load")
_AGENT = re.compile(r"(?:stable_baselines3|sb3_contrib)\.(?:\w+\.)*[A-Z0-9]+")
_EVALUATION = "stable_baselines3.common.evaluation.evaluate_policy"
_NORMALISER, _HANDS_OVER = "VecNormalize", "sync_envs_normalization"


class NormalisationNotRestored(Check):
    asks_rest = frozenset(
        {"evaluate_policy", "VecNormalize", "PPO", "A2C", "SAC", "TD3", "DQN", "DDPG", "RecurrentPPO", "TQC"}
    )

    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Policies that are loaded to act in an environment whose normalisation has just been made, and knows nothing."""
        if "obs_rms" in self.facts.source.text or any(path.endswith(_HANDS_OVER) for path in entry.calls):
            return  # statistics that are handed over by hand
        for path in entry.paths:
            trained: list[Value | None] = []
            last: Called | None = None
            for event in path.events:
                if isinstance(event, CalledUnknown) and last is not None and _predicts_from(event):
                    yield self._fault(last, event)
                    last = None
                if not isinstance(event, Called):
                    continue
                if event.receiver is None and event.name == _NORMALISER:
                    last = event
                elif _AGENT.fullmatch(event.path):
                    trained.append(event.argument("env", 1))
                elif (
                    last is not None
                    and _acts_in(event, trained)
                    and not is_constant(last.argument("norm_obs", 2), False)
                ):
                    yield self._fault(last, event)
                    last = None

    def _fault(self, made: Called, event: Called | CalledUnknown) -> Fault:
        message = (
            "the policy acts in a `VecNormalize` that is new: the statistics that it was trained with are not loaded"
        )
        return Fault(beside(made, event), message, None, (event.site, made.site), event.where.places[1:])


def _predicts_from(event: CalledUnknown) -> bool:
    """Whether a loaded policy is asked what to do by what a new environment with a normalisation shows."""
    agent, seen = getattr(event.callee, "holder", None), event.values[:1]
    if getattr(event.callee, "hint", "") != "predict" or getattr(agent, "hint", "") != "load":
        return False
    return any(isinstance(each, Unknown) and getattr(each.given_by, "hint", "") == _NORMALISER for each in seen)


def _acts_in(event: Called, trained: list[Value | None]) -> bool:
    """Whether a loaded policy is given an environment with a normalisation that no training has been through."""
    loaded = event.argument("model", 0)
    if (_LOAD.fullmatch(event.path) and _NORMALISER not in event.path) or (
        event.path == _EVALUATION and isinstance(loaded, Unknown) and loaded.hint == "load"
    ):
        env = event.argument("env", 1)
    else:
        return False
    return isinstance(env, Unknown) and env.hint == _NORMALISER and not any(env is each for each in trained)
