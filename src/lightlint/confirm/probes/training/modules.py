"""What modules hold without knowing it, what two names share, and what is kept longer than meant."""

from __future__ import annotations

from lightlint.confirm.probes.probe import Probe, confirmed, hits, not_observable, refuted, still_open
from lightlint.confirm.probes.training.gradients import at
from lightlint.confirm.records import Run
from lightlint.confirm.verdict import Claim, Number, Verdict


def _attribute(claim: Claim) -> str:
    return claim.details.get("0", "").removeprefix("self.")


def unregistered_modules(claim: Claim, run: Run) -> Verdict:
    """Whether the attribute holds modules that their holder does not know of."""
    name = _attribute(claim)
    for _, event in at(claim, run, "module"):
        found = event["modules"].get(name)
        if not found:
            continue
        numbers = [
            Number("modules in it", found["held"]),
            Number("unknown to the module", found["missing"]),
            Number("parameters of these", found["parameters"]),
            Number("that an optimizer holds", found["trained"]),
        ]
        what = f"`{name}` of {event['type']}"
        if not found["missing"]:
            return refuted(run, f"all {found['held']} modules in {what} are registered elsewhere in it", numbers)
        if found["parameters"] and not found["trained"]:
            return confirmed(
                run,
                f"{found['missing']} modules in {what} are not among its modules, no optimizer holds their "
                f"{found['parameters']} parameters",
                numbers,
            )
        if found["parameters"]:
            return still_open(
                run,
                f"{found['missing']} modules in {what} are not among its modules, an optimizer got "
                f"{found['trained']} of {found['parameters']} parameters all the same",
                numbers,
            )
        return still_open(run, f"the modules in {what} have no parameters that could be missed", numbers)
    return not_observable(run, f"no module with modules in `{name}` was alive when training ran or the program ended")


def unregistered_parameters(claim: Claim, run: Run) -> Verdict:
    """Whether the attribute is the result of an operation on a parameter instead of a parameter."""
    name = _attribute(claim)
    for _, event in at(claim, run, "module"):
        if event["tensors"].get(name, {}).get("lost"):
            return confirmed(run, f"`{name}` of {event['type']} is a result with a graph and not among its parameters")
        if name in event["parameters"]:
            if "()`" in claim.message:
                return not_observable(
                    run, f"here the move is to where `{name}` was, which returns the parameter itself"
                )
            return refuted(run, f"`{name}` is among the parameters of {event['type']}")
    return not_observable(run, f"no module with `{name}` was alive when training ran or the program ended")


def tensors_follow_module(claim: Claim, run: Run) -> Verdict:
    """Whether the attribute follows when a twin of the module is moved."""
    name = _attribute(claim)
    for _, event in at(claim, run, "module"):
        follows = event["tensors"].get(name, {}).get("follows")
        if follows is False:
            return confirmed(run, f"a twin of {event['type']} was moved to another device, and `{name}` stayed")
        if follows:
            return refuted(run, f"a twin of {event['type']} was moved to another device, and `{name}` followed")
    return not_observable(run, f"no module with a plain tensor `{name}` that a twin of could be moved was alive")


def shared_parameters(claim: Claim, run: Run) -> Verdict:
    """Whether two names, or two places of a container, stand for the same parameters."""
    seen = [event["changes"].get("shared", {}) for _, event in hits(claim, run)]
    if claim.name == "shared-layer-by-multiplication":
        return _places(run, seen)
    first, second = claim.details.get("0", ""), claim.details.get("1", "")
    for changes in seen:
        if first in changes and second in changes:
            one, other = (set(changes[name][1]["parameters"]) for name in (first, second))
            numbers = [Number(f"parameters of {first}", len(one)), Number("shared", len(one & other))]
            if one & other:
                return confirmed(
                    run, f"`{first}` and `{second}` share {len(one & other)} of {len(one)} parameters", numbers
                )
            if one and other:
                return refuted(run, f"`{first}` and `{second}` have parameters of their own", numbers)
    return not_observable(run, "the two modules were not both among the line's variables")


def _places(run: Run, seen: list[dict[str, list[dict[str, int] | None]]]) -> Verdict:
    made = [
        (name, after)
        for changes in seen
        for name, (before, after) in changes.items()
        if before is None and after and after["places"] > 1
    ]
    for name, after in made:
        if after["distinct"] < after["places"]:
            numbers = [Number("places", after["places"]), Number("layers in them", after["distinct"])]
            return confirmed(
                run, f"`{name}` has {after['places']} places and {after['distinct']} layer in them", numbers
            )
    if made:
        return refuted(run, f"each place of `{made[0][0]}` has a layer of its own")
    return not_observable(run, "no container with several places was among the variables behind the line")


def state_unchanged(claim: Claim, run: Run) -> Verdict:
    """Whether what is kept as the best state changes with the next step."""
    name = claim.details.get("0", "")
    counts = [
        event["changes"]["states"][name][1]
        for _, event in hits(claim, run)
        if name in event["changes"].get("states", {})
    ]
    changed = [event["changed"] for _, event in run.each("kept") if event["name"] == name]
    if not counts:
        return not_observable(run, f"`{name}` was no dict of tensors behind the line")
    tensors, aliased = counts[0]
    numbers = [Number("tensors kept", tensors), Number("that are the weights themselves", aliased)]
    if aliased and any(changed):
        return confirmed(
            run,
            f"{aliased} of {tensors} tensors in `{name}` are the weights themselves: the next step changed them",
            numbers,
        )
    if aliased:
        return still_open(
            run, f"{aliased} of {tensors} tensors in `{name}` are the weights themselves; no step followed", numbers
        )
    return refuted(run, f"none of {tensors} tensors in `{name}` shares memory with a weight", numbers)


def list_growth(claim: Claim, run: Run) -> Verdict:
    """Whether a list still holds an epoch's entries when the next one begins to fill it."""
    name = claim.details.get("0", "")
    for rank, process in run.ranks.items():
        epochs: list[list[list[int]]] = [[]]
        for event in process.of("line", "metrics"):
            if event.kind == "metrics" and epochs[-1]:
                epochs.append([])
            elif event.kind == "line" and event["finding"] == claim.index:
                length = event["changes"].get("lengths", {}).get(name)
                if length and length[0] is not None:
                    epochs[-1].append(length)
        full = [lengths for lengths in epochs if lengths]
        if len(full) < 2:
            continue
        starts = [lengths[0][0] for lengths in full[1:]]
        numbers = [
            Number(f"entries when epoch {number} begins", start, rank=rank) for number, start in enumerate(starts, 2)
        ]
        if all(start >= lengths[-1][1] > 0 for start, lengths in zip(starts, full, strict=False)):
            return confirmed(
                run, f"`{name}` still holds {starts[0]} entries when the next epoch begins to fill it", numbers
            )
        if not any(starts):
            return refuted(run, f"`{name}` is empty when each of {len(starts)} later epochs begins to fill it", numbers)
        return still_open(run, f"`{name}` holds {starts[0]} entries when the next epoch begins", numbers)
    return not_observable(run, f"`{name}` was not filled in two epochs of this run")


PROBES = {
    "unregistered-modules": Probe(unregistered_modules, meters=("modules",)),
    "unregistered-parameters": Probe(unregistered_parameters, meters=("modules",)),
    "tensors-follow-module": Probe(tensors_follow_module, meters=("modules",)),
    "shared-parameters": Probe(shared_parameters, meters=("modules",)),
    "state-unchanged": Probe(state_unchanged, meters=("modules",)),
    "list-growth": Probe(list_growth, meters=("variables", "trainer")),
}
