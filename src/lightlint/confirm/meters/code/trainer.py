"""What Lightning's Trainer knows at the points of its loops: metrics, what its callbacks keep, how far it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_KEPT = ("best_model_score", "best_score")  # ModelCheckpoint's name, EarlyStopping's


def install(session: Session) -> None:
    """Look whenever the recording callback is called."""
    session.in_trainer.append(session.guard("trainer")(_Trainer(session).look))


class _Trainer:
    """What was told already of the process's Trainers."""

    def __init__(self, session: Session) -> None:
        self._record = session.record
        self._hooks: set[str] = set()

    def look(self, hook: str, trainer: Any, module: Any) -> None:
        """Record what may have changed at this point."""
        if hook not in self._hooks:
            self._hooks.add(hook)
            self._record.emit("hook", name=hook)
        if hook in {"on_validation_end", "on_train_epoch_end", "on_train_end"} and not trainer.sanity_checking:
            values = {str(key): _number(value) for key, value in trainer.callback_metrics.items()}
            self._record.emit("metrics", when=hook, values=values, epoch=trainer.current_epoch)
        if hook == "on_train_start":
            modules = sorted(str(key) for key, value in dict(module.hparams).items() if hasattr(value, "state_dict"))
            self._record.emit("hyperparameters", modules=modules)
        if hook == "on_train_epoch_start":
            counts = {
                name: each._update_count for name, each in module.named_modules() if hasattr(each, "_update_count")
            }
            self._record.emit("metric-counts", epoch=trainer.current_epoch, counts=counts)
        if hook == "on_train_end":
            self._record.emit(
                "loop",
                epoch=trainer.current_epoch,
                batches=trainer.fit_loop.total_batch_idx + 1,
                global_step=trainer.global_step,
            )
        if hook in {"on_train_start", "on_train_end"}:
            for callback in trainer.callbacks:
                if getattr(callback, "monitor", None) is not None:
                    self._callback(callback)

    def _callback(self, callback: Any) -> None:
        best = next((getattr(callback, name) for name in _KEPT if getattr(callback, name, None) is not None), None)
        self._record.emit(
            "callback",
            type=type(callback).__name__,
            monitor=callback.monitor,
            mode=str(getattr(callback, "mode", "")),
            best=None if best is None else _number(best),
        )


def _number(value: Any) -> float:
    return float(value.detach().float().mean()) if hasattr(value, "detach") else float(value)
