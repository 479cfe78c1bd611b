"""What is made of texts, kept for those that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """What a function makes of texts, kept for the latest ones up to some amount of text.

    Args:
        make: the function.
        most: how many characters of text.
    """

    def __init__(self, make: Callable[[str], T], most: int) -> None:
        self._make, self._most = make, most
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._size = 0

    def __call__(self, text: str) -> T:
        if text in self._kept:
            self._kept.move_to_end(text)
            return self._kept[text]
        made = self._kept[text] = self._make(text)
        self._size += len(text)
        while self._size > self._most and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[0])
        return made
