"""Which hook a method's name was meant to be."""

from __future__ import annotations

from functools import lru_cache

# words that people write for one of a hook's
_WORDS = {
    "training": "train", "trained": "train", "val": "validation", "valid": "validation", "validate": "validation",
    "eval": "validation", "testing": "test", "pred": "predict", "prediction": "predict", "predicting": "predict",
    "optim": "optimizer", "optimizers": "optimizer", "optimiser": "optimizer", "optimisers": "optimizer",
    "opt": "optimizer", "dataloaders": "dataloader", "loader": "dataloader", "dl": "dataloader", "steps": "step",
    "epochs": "epoch", "batches": "batch", "begin": "start", "ends": "end", "starts": "start", "finish": "end",
    "ended": "end", "started": "start", "models": "model", "callback": "callbacks", "schedulers": "scheduler",
}  # fmt: skip
# hooks of Lightning before 1.0, which called them
BEFORE_1_0 = {
    "tng_dataloader": "train_dataloader",
    "validation_end": "on_validation_epoch_end",
    "test_end": "on_test_epoch_end",
}
_SHORTEST = 9  # letters of a name that one letter may be wrong in; two may in names of twice that


@lru_cache(maxsize=4096)  # methods of many classes have the same names
def close_hook(name: str, hooks: frozenset[str]) -> str | None:
    """The one hook that a name that is none means: the same words, or a letter or two beside it."""
    candidates = sorted(hooks)
    if BEFORE_1_0.get(name) in candidates:
        return BEFORE_1_0[name]
    same = [hook for hook in candidates if _words(hook) == _words(name)]
    if len(same) == 1:
        return same[0]
    allowed = 2 if len(name) >= 2 * _SHORTEST else 1 if len(name) >= _SHORTEST else 0
    near = [hook for hook in candidates if allowed and distance(name, hook) <= allowed]
    return near[0] if len(near) == 1 and near[0].startswith("on_") == name.startswith("on_") else None


def _words(name: str) -> list[str]:
    return [_WORDS.get(word, word) for word in name.lower().split("_") if word]


def distance(left: str, right: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbour to get from one word to the other."""
    if abs(len(left) - len(right)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
