"""The logger that stands in for a program's own: it logs nothing, and answers whatever the program asks of it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any


class Experiment:
    """A tracker's run that takes everything: `experiment.config.update(...)`, `experiment.add_scalar(...)`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __getattr__(self, name: str) -> Experiment:
        if name.startswith("__"):  # what pickle and copy ask for
            raise AttributeError(name)
        return self

    def __call__(self, *_args: Any, **_kwargs: Any) -> Experiment:
        return self

    def __getitem__(self, _key: Any) -> Experiment:
        return self

    def __setitem__(self, _key: Any, _value: Any) -> None:
        return

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Experiment:
        return self

    def __exit__(self, *_error: object) -> None:
        return

    def __fspath__(self) -> str:
        return self._folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Experiment, (self._folder,)


def make_logger(package: str, folder: str) -> Any:
    """A logger of `pytorch_lightning` or `lightning.pytorch` whose directories are `folder`, as a program may write there."""
    return _logger_class(package)(folder)


@cache
def _logger_class(package: str) -> Any:
    base: Any = importlib.import_module(f"{package}.loggers.logger").DummyLogger

    class Quiet(base):  # type: ignore[misc]
        def __init__(self, folder: str) -> None:
            super().__init__()
            self._experiment = Experiment(folder)
            self._folder = folder

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return super().__getattr__(name)

        @property
        def save_dir(self) -> str:
            return self._folder

        @property
        def log_dir(self) -> str:
            return self._folder

        @property
        def root_dir(self) -> str:
            return self._folder

        def __reduce__(self) -> tuple[Any, tuple[str, str]]:
            """Pickled for `ddp_spawn`: the class is made anew."""
            return make_logger, (package, self._folder)

    return Quiet
