"""Charts of a forecast, drawn by plotly: what the peak is made of, and which modules' activations."""

from __future__ import annotations

from lightlint.confirm.launch.target import CommandError
from lightlint.forecast import fit
from lightlint.forecast.breakdown import MIB
from lightlint.forecast.report import Forecast

try:
    import plotly.graph_objects as go
except ImportError as error:  # told before the run starts
    raise CommandError("the HTML report needs plotly: pip install 'lightlint[report]'") from error

_TOP = 10


def charts(forecast: Forecast) -> list[str]:
    """The charts as HTML; the first carries plotly's own script."""
    step = forecast.step
    if step is None:
        return []
    parts = {**step.kinds, "workspace": fit.workspace(None)}
    whole = go.Figure([go.Bar(x=[size / MIB], y=["peak"], name=name, orientation="h") for name, size in parts.items()])
    whole.update_layout(barmode="stack", xaxis_title="MiB", height=240, template="plotly_white")
    top = list(step.modules.items())[:_TOP][::-1]
    modules = go.Figure(
        [go.Bar(x=[size / MIB for _, size in top], y=[name or "outside" for name, _ in top], orientation="h")]
    )
    modules.update_layout(
        xaxis_title="MiB of activations at the peak", height=120 + 28 * len(top), template="plotly_white"
    )
    return [
        whole.to_html(full_html=False, include_plotlyjs=True),
        modules.to_html(full_html=False, include_plotlyjs=False),
    ]
