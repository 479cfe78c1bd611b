"""What the workers of data loaders drew from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lightlint.confirm.probes.probe import Probe, confirmed, not_observable, refuted, still_open
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_CONSTANT_SEED = "worker-init-constant-seed"


@dataclass
class _Team:
    """The workers of one pass: the state in which each began with a generator, and the generators that were drawn from."""

    begun: dict[str, dict[int, str]] = field(default_factory=dict)
    drawn: set[str] = field(default_factory=set)
    own: bool = False  # whether the finding lies in the class of their data set


def first_draws(claim: Claim, run: Run) -> Verdict:
    """Whether the workers of a loader began with a generator in the same state, and drew from it."""
    teams = _teams(claim, run)
    chosen = [team for team in teams if team.own] or teams
    several = [team for team in chosen if any(len(states) > 1 for states in team.begun.values())]
    if not several:
        return not_observable(run, "no two workers held such a random generator")
    for team in several:
        for name, states in team.begun.items():
            if len(states) > 1 and len(set(states.values())) == 1 and name in team.drawn:
                numbers = [
                    Number(f"state of `{name}` in worker {each}", state) for each, state in sorted(states.items())
                ]
                return confirmed(run, f"{len(states)} workers drew from `{name}` beginning in the same state", numbers)
    apart = all(len(set(states.values())) == len(states) for team in several for states in team.begun.values())
    if apart and (claim.name == _CONSTANT_SEED or all(team.own for team in several)):
        return refuted(run, "each worker began with its generator in a state of its own")
    return still_open(run, "no worker was seen to draw from a generator that another had in the same state")


def _teams(claim: Claim, run: Run) -> list[_Team]:
    teams: dict[str, _Team] = {}
    for process in run.processes:
        for event in process.of("worker"):
            if claim.name == _CONSTANT_SEED and not event["initialised"]:
                continue
            team = teams.setdefault(event["group"], _Team())
            source = event["source"]
            team.own = bool(source) and source[0] == claim.file and source[1] <= claim.first <= source[2]
            for name, state in _states(claim, event).items():
                if event["when"] == "begin":
                    team.begun.setdefault(name, {})[event["worker"]] = state
                elif team.begun.get(name, {}).get(event["worker"]) != state:
                    team.drawn.add(name)
    return list(teams.values())


def _states(claim: Claim, event: Event) -> Mapping[str, str]:
    """The generators that a finding is about: those of the data set, or the global ones that its message names."""
    if claim.name != _CONSTANT_SEED:
        return dict(event["generators"])
    return {name: state for name, state in event["states"].items() if name in claim.details.values()}


PROBES = {"first-draws-per-worker": Probe(first_draws, meters=("rng", "loaders"), needs_lines=False)}
