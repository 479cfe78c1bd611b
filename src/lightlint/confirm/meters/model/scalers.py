"""Gradient scalers: which live, and whether they multiplied a loss since their last update."""

from __future__ import annotations

import weakref
from functools import wraps
from types import ModuleType
from typing import Any


class Scalers:
    """The gradient scalers of one process."""

    def __init__(self) -> None:
        self._living: weakref.WeakSet[Any] = weakref.WeakSet()
        self._scaled: set[int] = set()

    def watch(self, module: ModuleType) -> None:
        """Note the scalers that are made, and each time one scales a loss or updates its factor."""
        scaler_class = module.GradScaler
        construct, scale, update = scaler_class.__init__, scaler_class.scale, scaler_class.update
        meter = self

        @wraps(construct)
        def __init__(scaler: Any, *args: Any, **kwargs: Any) -> None:
            construct(scaler, *args, **kwargs)
            meter._living.add(scaler)

        @wraps(scale)
        def wrapped_scale(scaler: Any, outputs: Any) -> Any:
            meter._scaled.add(id(scaler))
            return scale(scaler, outputs)

        @wraps(update)
        def wrapped_update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            meter._scaled.discard(id(scaler))
            return update(scaler, *args, **kwargs)

        scaler_class.__init__, scaler_class.scale, scaler_class.update = __init__, wrapped_scale, wrapped_update

    def of(self, optimizer: Any) -> dict[str, Any] | None:
        """The scaler that multiplied a loss since its last update, with what it knows of an optimizer."""
        for scaler in self._living:
            if scaler.is_enabled() and id(scaler) in self._scaled:
                stage = scaler._per_optimizer_states.get(id(optimizer), {}).get("stage")
                return {"scale": scaler.get_scale(), "stage": getattr(stage, "name", "READY")}
        return None
