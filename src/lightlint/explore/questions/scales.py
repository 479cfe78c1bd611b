"""Which optimizers take the same steps however large all gradients are."""

from __future__ import annotations

import re

_EVEN = re.compile(
    r"(?:torch\.optim\.(?:\w+\.)?|transformers\.(?:optimization\.)?)(?P<name>Adam|AdamW|NAdam|RAdam|Adamax)"
)


def evens(name: str, decays: bool) -> bool:
    """Whether an optimizer's steps are the same however large all gradients are: it divides them by what they mostly are.

    A weight decay that is added to the gradient is another thing beside a larger one; AdamW's is not added.
    """
    found = _EVEN.fullmatch(name)
    return found is not None and (found["name"] == "AdamW" or not decays)
