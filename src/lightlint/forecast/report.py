"""A forecast as text, JSON or HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from lightlint.forecast import fit
from lightlint.forecast.breakdown import MIB, Measured, Simulation, Step
from lightlint.forecast.gpus import CONTEXT, Gpu
from lightlint.reports.paint import Span, draw

_TOP = 10


@dataclass(frozen=True, slots=True)
class Budget:
    """What a step must fit into: a GPU, or a number of bytes that the user gave."""

    name: str
    usable: int  # bytes
    gpu: Gpu | None = None

    @property
    def tensors(self) -> int:
        """Bytes left for tensors, without the workspace of cuBLAS and what the allocator holds unused."""
        return int(self.usable / fit.RESERVED[0]) - fit.workspace(self.gpu)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a command's training step takes; `measured` where it ran for real, as it could not be simulated."""

    command: str
    simulation: Simulation
    budgets: tuple[Budget, ...]
    measured: Measured | None = None

    @property
    def step(self) -> Step | None:
        return self.simulation.step("step") or self.simulation.step("first")

    @property
    def allocated(self) -> int | None:
        """What `torch.cuda.max_memory_allocated` says, or will say."""
        if self.measured is not None:
            return self.measured.allocated
        return fit.allocated(self.step, None) if self.step is not None else None

    @property
    def reserved(self) -> tuple[int, int] | None:
        """Bytes that the allocator will hold, at least and at most."""
        if self.measured is not None:
            return self.measured.reserved, self.measured.reserved
        if self.step is None:
            return None
        low, high = (int(factor * fit.allocated(self.step, None)) for factor in fit.RESERVED)
        return low, high

    @property
    def problem(self) -> str:
        """Why there is no forecast, or no more of one."""
        simulation = self.simulation
        if self.step is None and self.measured is None and simulation.device is not None:
            where = (
                f", nor measured on {simulation.device}" if simulation.device else ", and here is no GPU to measure it"
            )
            return f"the step cannot be simulated{where}: {simulation.problem}"
        return simulation.problem

    def fits(self, budget: Budget) -> bool | None:
        """Whether the step fits a budget."""
        if self.measured is not None:
            return self.measured.allocated * fit.RESERVED[0] <= budget.usable
        return self.step.peak <= budget.tensors if self.step is not None else None


def as_dict(forecast: Forecast) -> dict[str, Any]:
    """The forecast for programs; bytes throughout."""
    simulation, step = forecast.simulation, forecast.step
    return {
        "schema": 1,
        "command": forecast.command,
        "problem": forecast.problem,
        "seconds": simulation.seconds,
        "step": asdict(step) if step else None,
        "allocated": forecast.allocated,
        "reserved": forecast.reserved,
        "measured": asdict(forecast.measured) if forecast.measured else None,
        "context": CONTEXT,
        "workspace": fit.workspace(None),
        "ddp_extra": fit.reducer(step) if step else None,
        "budgets": [_budget(forecast, budget) for budget in forecast.budgets],
        "savings": _savings(forecast),
        "steps": [asdict(each) for each in simulation.steps],
    }


def _budget(forecast: Forecast, budget: Budget) -> dict[str, Any]:
    simulation = forecast.simulation
    checked = simulation.step(f"check {budget.name}")
    near = checked is not None and fit.is_near(checked, budget.tensors)
    size = checked.batch if checked and near else fit.largest(simulation, budget.tensors)
    return {
        "name": budget.name,
        "usable": budget.usable,
        "fits": forecast.fits(budget),
        "largest_batch": size,
        "checked_peak": fit.allocated(checked, budget.gpu) if checked else None,
        "checked": near,
        "source": budget.gpu.source if budget.gpu else None,
    }


def _savings(forecast: Forecast) -> dict[str, int]:
    """Bytes that other ways to train would save, each alone."""
    simulation, step = forecast.simulation, forecast.step
    found: dict[str, int] = {}
    if step is None:
        return found
    half = simulation.step("bf16")
    if half is not None:
        found["autocast to bfloat16"] = step.peak - half.peak
    blocks = fit.checkpointed(step)
    if blocks is not None:
        found[f"checkpointing the {blocks.count} layers of `{blocks.path}`, about"] = blocks.saved
    line = fit.slope(simulation)
    if line is not None and step.batch and step.batch > 1:
        found[f"two micro-batches of {step.batch // 2} accumulated"] = int(line.each * (step.batch - step.batch // 2))
    return {name: size for name, size in found.items() if size > 0}


def render_json(forecast: Forecast) -> str:
    """One object."""
    return json.dumps(as_dict(forecast), indent=2) + "\n"


def render_text(forecast: Forecast, colour: bool) -> str:
    """The forecast for people."""
    return draw(_spans(forecast), colour)


def _spans(forecast: Forecast) -> Iterator[Span]:
    step, reserved = forecast.step, forecast.reserved
    if forecast.measured is not None:
        yield from _of_measured(forecast, forecast.measured)
        return
    if step is None or reserved is None:
        yield "no forecast", "bold red"
        yield f": {forecast.problem}\n", ""
        return
    low, high = reserved
    yield f"{_size(fit.allocated(step, None))} allocated at the peak", "bold"
    yield f", {_size(low)} to {_size(high)} reserved{f', batch {step.batch}' if step.batch else ''}\n\n", ""
    rows = [*step.kinds.items(), ("workspace of cuBLAS (Hopper)", fit.workspace(None))]
    for name, size in rows:
        yield f"  {_size(size):>12}  {name}\n", ""
    yield f"  {_size(fit.reducer(step)):>12}  more under DDP, for the reducer's buckets\n", "dim"
    if step.modules:
        yield "\nactivations by module\n", "bold"
        for name, size in list(step.modules.items())[:_TOP]:
            yield f"  {_size(size):>12}  {name or 'outside any module'}\n", ""
    if forecast.budgets:
        yield "\nwhat fits\n", "bold"
        for row in (_budget(forecast, budget) for budget in forecast.budgets):
            yield from _fits(row)
    savings = _savings(forecast)
    if savings:
        yield "\nwhat would save\n", "bold"
        for name, size in savings.items():
            yield f"  {_size(size):>12}  {name}\n", ""
    if forecast.problem:
        yield f"\nnot simulated further: {forecast.problem}\n", "bold yellow"


def _of_measured(forecast: Forecast, measured: Measured) -> Iterator[Span]:
    yield f"{_size(measured.allocated)} allocated at the peak", "bold"
    yield f", {_size(measured.reserved)} reserved{f', batch {measured.batch}' if measured.batch else ''}: ", ""
    yield f"measured on {measured.device}\n\n", "bold"
    rest = measured.allocated - sum(measured.kinds.values())
    for name, size in (*measured.kinds.items(), ("gradients, batch, activations, workspace", rest)):
        yield f"  {_size(size):>12}  {name}\n", ""
    if forecast.budgets:
        yield "\nwhat fits\n", "bold"
        for row in (_budget(forecast, budget) for budget in forecast.budgets):
            yield from _fits(row)
    yield f"\nmeasured, as it cannot be simulated: {forecast.problem}\n", "bold yellow"


def _fits(row: dict[str, Any]) -> Iterator[Span]:
    yield f"  {row['name']:10}", ""
    yield ("fits" if row["fits"] else "does not fit"), ("bold green" if row["fits"] else "bold red")
    if row["largest_batch"] is not None:
        how = f", simulated at {_size(row['checked_peak'])}" if row["checked"] else ""
        yield f", largest batch about {row['largest_batch']}{how}", ""
    yield "\n", ""


def _size(size: float) -> str:
    return f"{size / MIB:,.0f} MiB" if size >= 10 * MIB else f"{size / MIB:,.1f} MiB"


def render_html(forecast: Forecast, figures: Sequence[str]) -> str:
    """One page with the text and the charts; it loads nothing from anywhere."""
    body = "\n".join(figures)
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>lightlint forecast: {escape(forecast.command)}</title>
<style>:root {{ color-scheme: light dark; }} body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
pre {{ font: 0.9em ui-monospace, monospace; overflow-x: auto; }}</style></head>
<body><h1><code>{escape(forecast.command)}</code></h1>
<pre>{escape(render_text(forecast, colour=False))}</pre>
{body}
</body></html>
"""
