"""Autograd graphs that live longer than the batch they belong to."""

from __future__ import annotations

from itertools import pairwise

from lightlint.confirm.probes.probe import Probe, confirmed, hits, refuted, still_open
from lightlint.confirm.records import Event, Run
from lightlint.confirm.verdict import Claim, Number, Verdict

_FEWEST = 3  # values that make a trend


def graph_growth(claim: Claim, run: Run) -> Verdict:
    """Nodes and saved bytes of the graph behind what is kept, from one run of the line to the next."""
    name = claim.details.get("0", "").split("[")[0]
    for rank, process in run.ranks.items():
        changes = [
            event["changes"]["graphs"][name]
            for event in process.of("line")
            if event["finding"] == claim.index and name in event["changes"].get("graphs", {}) and not _cut_off(event)
        ]
        sizes = _longest(changes)
        if not sizes:
            continue
        nodes, saved = [size[0] for size in sizes], [size[1] for size in sizes]
        numbers = [
            Number("graph nodes behind it", " -> ".join(map(str, nodes)), rank=rank),
            Number("saved by them", " -> ".join(f"{size / 1024:.4g}" for size in saved), "KiB", rank),
        ]
        if not any(after[0] for _, after in changes if after is not None):
            return refuted(run, f"`{name}` never had a graph: {len(changes)} times it was a plain value", numbers)
        times = len(sizes)
        if times >= _FEWEST and _grows(nodes) and _grows(saved):
            each = (saved[-1] - saved[0]) / (times - 1) / 1024
            return confirmed(
                run, f"`{name}` keeps {each:.4g} KiB of saved tensors more each time, {nodes[-1]} nodes by now", numbers
            )
        if times >= _FEWEST and _grows(nodes):
            each = (nodes[-1] - nodes[0]) / (times - 1)
            return still_open(
                run,
                f"the graph behind `{name}` grows by {each:.3g} nodes each time, but what they saved is freed",
                numbers,
            )
        return still_open(run, f"`{name}` has a graph of {nodes[-1]} nodes that did not grow in {times} times", numbers)
    if hits(claim, run):
        return still_open(run, f"`{name}` could not be looked at from the line")
    return still_open(run, "the line did not run")


def _cut_off(event: Event) -> bool:
    """Whether the run was cut within the line: the function ended there and nothing had changed."""
    return event.get("then") is None and all(before == after for before, after in event["changes"]["graphs"].values())


def _longest(changes: list[list[list[int] | None]]) -> list[list[int]]:
    """The sizes behind the line, for the longest stretch in which nothing took them back in between: a sum over the
    batches of one epoch begins anew in the next."""
    stretches: list[list[list[int]]] = []
    for before, after in changes:
        if after is not None and stretches and before == stretches[-1][-1]:
            stretches[-1].append(after)
        elif after is not None:
            stretches.append([after])
    return max(stretches, key=len, default=[])


def _grows(values: list[int]) -> bool:
    return all(later > earlier for earlier, later in pairwise(values))


PROBES = {"graph-growth": Probe(graph_growth, meters=("graph",))}
