"""The Lightning callback that the recording puts into a Trainer."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

from lightlint.confirm.boot.frameworks.fitting import enter, leave

if TYPE_CHECKING:
    from lightlint.confirm.boot.session import Session

_POINTS = (
    *("on_train_start", "on_train_epoch_start", "on_train_batch_end", "on_train_epoch_end", "on_train_end"),
    *("on_validation_epoch_end", "on_validation_end", "on_test_epoch_end", "on_predict_epoch_end"),
)  # hooks at which the session looks at the Trainer


@cache
def make_callback(package: str) -> Any:
    """The callback class for `pytorch_lightning` or `lightning.pytorch`: each refuses the other's."""
    base: Any = importlib.import_module(package).Callback

    class Recording(base):  # type: ignore[misc]
        """Tells the session what the Trainer does."""

        def __init__(self, session: Session | None = None) -> None:
            self._session = session or _current()

        def __reduce__(self) -> tuple[Any, tuple[str]]:
            """Pickled for `ddp_spawn`: the child has a session of its own."""
            return _remake, (package,)

        def _come_to(self, hook: str, trainer: Any, pl_module: Any) -> None:
            if self._session:
                for each in self._session.in_trainer:
                    each(hook, trainer, pl_module)

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            enter()  # here, not in Trainer.__init__: a spawned rank unpickles its Trainer
            self._told("trainer-start", trainer, stage=stage)
            self._come_to("setup", trainer, pl_module)

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            leave()
            self._told("trainer-end", trainer, stage=stage)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            leave()
            if self._session:
                from lightlint.confirm.boot.exits import tell_exception

                tell_exception(self._session, exception)

        def _told(self, kind: str, trainer: Any, **fields: Any) -> None:
            if self._session:
                self._session.record.emit(
                    kind,
                    rank=trainer.global_rank,
                    world=trainer.world_size,
                    device=str(trainer.strategy.root_device),
                    **fields,
                )

    for point in _POINTS:
        setattr(Recording, point, _at(point))
    return Recording


def _at(point: str) -> Any:
    def come_to(self: Any, trainer: Any, pl_module: Any, *_args: Any, **_kwargs: Any) -> None:
        self._come_to(point, trainer, pl_module)

    return come_to


def _remake(package: str) -> Any:
    return make_callback(package)()


def _current() -> Session | None:
    from lightlint.confirm.boot.session import current

    return current()
