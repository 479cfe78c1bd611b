"""Pictures of a run, drawn by plotly: memory, samples by rank, step time, parameters that differ between ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lightlint.confirm.launch.target import CommandError
from lightlint.confirm.records import Event, Process, Run

try:
    import plotly.graph_objects as go
except ImportError as error:  # told before the run starts: the command imports its report first
    raise CommandError("the HTML report needs plotly: pip install 'lightlint[report]'") from error

_MIB = 2**20
_HEIGHT = 340  # pixels
_MOST_SAMPLES = 2000


def pictures(run: Run) -> str:
    """The pictures that the run's records suffice for, as HTML; the first carries plotly's own script."""
    parts: list[str] = []
    draw: list[tuple[str, Callable[[Run], Any]]] = [
        ("Memory over steps", _memory),
        ("Samples drawn by each rank", _samples),
        ("Where a step's time goes", _times),
        ("Parameters of the ranks", _divergence),
    ]
    for title, make in draw:
        figure = make(run)
        if figure is not None:
            figure.update_layout(height=_HEIGHT, template="plotly_white", margin={"t": 30, "b": 50, "l": 60, "r": 20})
            body = figure.to_html(full_html=False, include_plotlyjs=not parts, default_width="100%")
            parts.append(f"<h2>{title}</h2>\n{body}")
    return "\n".join(parts)


def _memory(run: Run) -> Any:
    """MiB in use after each step: the allocator's on a GPU, else the process's."""
    figure = go.Figure()
    for rank, process in run.ranks.items():
        events = process.of("memory")
        key = "allocated" if any(event.get("allocated") for event in events) else "rss"
        points = [(event.step, event[key] / _MIB) for event in events if event.get(key) is not None]
        if points:
            figure.add_scatter(
                x=[x for x, _ in points], y=[y for _, y in points], name=f"rank {rank}", mode="lines+markers"
            )
    figure.update_yaxes(rangemode="tozero")
    return _with_axes(figure, "optimizer step", "MiB") if figure.data else None


def _samples(run: Run) -> Any:
    """Which sample each rank draws at which position of its first pass: ranks that draw the same lie on each other."""
    figure = go.Figure()
    for rank, process in run.ranks.items():
        drawn = next((event["indices"] for event in _training_passes(process) if event["indices"]), None)
        if drawn:
            some = drawn[:_MOST_SAMPLES]
            marker = {"symbol": "circle-open" if rank % 2 else "cross-thin-open", "size": 9 + 2 * rank}
            figure.add_scatter(x=list(range(len(some))), y=some, name=f"rank {rank}", mode="markers", marker=marker)
    return _with_axes(figure, "position in the pass", "sample") if figure.data else None


def _training_passes(process: Process) -> Iterator[Event]:
    return (event for event in process.of("pass") if event["loader"] == process.busiest_loader)


def _times(run: Run) -> Any:
    """Milliseconds of each step spent waiting for its batch and computing, of the first rank."""
    process = next(iter(run.ranks.values()), None)
    if process is None:
        return None
    waits: list[float] = []
    rests: list[float] = []
    before: Event | None = None
    for event in process.of("batch"):
        if before is not None and event["loader"] == before["loader"] and event["pass"] == before["pass"]:
            waits.append(event["wait"] * 1000)
            rests.append(max(0.0, (event.time - before.time) * 1000 - waits[-1]))
        before = event
    if not waits:
        return None
    steps = list(range(1, len(waits) + 1))
    figure = go.Figure(
        [go.Bar(x=steps, y=waits, name="waiting for data"), go.Bar(x=steps, y=rests, name="the rest of the step")]
    )
    figure.update_layout(barmode="stack")
    return _with_axes(figure, "batch", "ms")


def _divergence(run: Run) -> Any:
    """How many parameter tensors differ between ranks after each step."""
    if run.world < 2:
        return None
    seen: dict[int, list[dict[str, str]]] = {}
    for _, event in run.each("parameters"):
        if event.get("when", "after") == "after":
            seen.setdefault(event.step, []).append(event["tensors"])
    points = [(step, _differing(tensors)) for step, tensors in sorted(seen.items()) if len(tensors) == len(run.ranks)]
    if not points:
        return None
    figure = go.Figure()
    figure.add_scatter(
        x=[x for x, _ in points], y=[y for _, y in points], name="differing tensors", mode="lines+markers"
    )
    figure.update_yaxes(rangemode="tozero")
    return _with_axes(figure, "optimizer step", "tensors that differ between ranks")


def _differing(tensors: list[dict[str, str]]) -> int:
    return sum(len({each.get(name) for each in tensors}) > 1 for name in tensors[0])


def _with_axes(figure: Any, x: str, y: str) -> Any:
    return figure.update_layout(xaxis_title=x, yaxis_title=y)
