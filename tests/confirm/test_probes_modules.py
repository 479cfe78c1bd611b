"""What modules hold beside their registered parts, what names share, what lists and states keep."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import claim, event, judged, line, run

from lightlint.confirm.records import Event


def module(**fields: Any) -> Event:
    return event("module", type="Net", findings=[0], **{"modules": {}, "tensors": {}, "parameters": [], **fields})


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({"held": 2, "missing": 2, "parameters": 4, "trained": 0}, "confirmed"),
        ({"held": 2, "missing": 0, "parameters": 0, "trained": 0}, "refuted"),
        ({"held": 2, "missing": 2, "parameters": 4, "trained": 4}, "open"),
        ({"held": 2, "missing": 2, "parameters": 0, "trained": 0}, "open"),
        (None, "not observable"),
    ],
)
def test_unregistered_modules(held: dict[str, int] | None, expected: str) -> None:
    about = claim("module-list-not-registered", "unregistered-modules", "`self.blocks` is a plain list")
    assert judged(about, run([line(), module(modules={"blocks": held} if held else {})]))[0] == expected


@pytest.mark.parametrize(
    ("found", "message", "expected"),
    [
        (module(tensors={"bias": {"lost": True}}), "`self.bias` is no parameter: `.to()` returns another", "confirmed"),
        (module(parameters=["bias"]), "`self.bias` is no parameter: `.to()` returns another", "not observable"),
        (module(parameters=["bias"]), "`self.bias` is no parameter: the result of the arithmetic", "refuted"),
        (module(), "`self.bias` is no parameter", "not observable"),
    ],
)
def test_unregistered_parameters(found: Event, message: str, expected: str) -> None:
    about = claim("parameter-lost-by-to", "unregistered-parameters", message)
    assert judged(about, run([line(), found]))[0] == expected


@pytest.mark.parametrize(("follows", "expected"), [(False, "confirmed"), (True, "refuted"), (None, "not observable")])
def test_tensors_that_follow(follows: bool | None, expected: str) -> None:
    about = claim("tensor-attribute-not-buffer", "tensors-follow-module", "`self.phase` stays on the CPU")
    found = module(tensors={"phase": {"lost": False, "follows": follows}})
    assert judged(about, run([line(), found]))[0] == expected


def holds(parameters: list[int], places: int = 0, distinct: int = 0) -> list[Any]:
    return [None, {"parameters": parameters, "places": places, "distinct": distinct}]


@pytest.mark.parametrize(("other", "expected"), [([1, 2], "confirmed"), ([3, 4], "refuted"), (None, "not observable")])
def test_shared_by_two_names(other: list[int] | None, expected: str) -> None:
    seen = {"target": holds([1, 2]), **({"net": holds(other)} if other else {})}
    about = claim("aliased-target-network", "shared-parameters", "`target` and `net` are one module")
    assert judged(about, run([line(shared=seen)]))[0] == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"stack": holds([1, 2], 3, 1)}, "confirmed"),
        ({"stack": holds([1, 2], 3, 3)}, "refuted"),
        ({"stack": holds([1, 2], 1, 1)}, "not observable"),
        ({"self": [holds([1])[1], holds([1, 2], 3, 3)[1]]}, "not observable"),  # was there before the line
    ],
)
def test_shared_by_two_places(seen: dict[str, Any], expected: str) -> None:
    about = claim("shared-layer-by-multiplication", "shared-parameters")
    assert judged(about, run([line(shared=seen)]))[0] == expected


@pytest.mark.parametrize(
    ("aliased", "changed", "expected"),
    [(8, True, "confirmed"), (8, None, "open"), (8, False, "open"), (0, None, "refuted")],
)
def test_a_best_state_that_moves_on(aliased: int, changed: bool | None, expected: str) -> None:
    events = [line(states={"best": [None, [8, aliased]]})]
    events += [] if changed is None else [event("kept", name="best", changed=changed)]
    about = claim("best-state-aliased", "state-unchanged", "`best` is no copy")
    assert judged(about, run(events))[0] == expected


@pytest.mark.parametrize(
    ("starts", "expected"),
    [([0, 4, 8], "confirmed"), ([0, 0, 0], "refuted"), ([0, 1, 0], "open"), ([0], "not observable")],
)
def test_a_list_from_epoch_to_epoch(starts: list[int], expected: str) -> None:
    events: list[Event] = []
    for start in starts:
        events += [line(lengths={"self.errors": [start + n, start + n + 1]}) for n in range(4)]
        events.append(event("metrics", when="on_validation_end", values={}, epoch=0))
    about = claim("step-outputs-never-cleared", "list-growth", "`self.errors` grows from epoch to epoch")
    assert judged(about, run(events))[0] == expected
