from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lightlint.check import Check, Fault
from lightlint.engine.events import Backward, Called, CalledUnknown, StateLoaded
from lightlint.engine.events.huggingface import TrainerRan
from lightlint.frameworks.huggingface.values import base_of, name_of
from lightlint.values.core import Library, is_constant
from lightlint.values.training import Module

if TYPE_CHECKING:
    from lightlint.engine.events import Event
    from lightlint.explore.rehearsals import Entry, Path

_ALL = re.compile(
    r"(?:transformers\.(?:\w+\.)*(?:set_seed|enable_full_determinism)|accelerate\.utils\.(?:\w+\.)*set_seed|lightning\.seed_everything)$"
)
_SEEDS = re.compile(
    r"(?:^|\.)(?:manual_seed|manual_seed_all|seed|seed_everything|set_seed|enable_full_determinism|set_rng_state)$"
)
_HEADED = re.compile(r"For(?:Sequence|Token|Image|Audio)Classification$|ForMultipleChoice$|ForQuestionAnswering$")
_BARE = re.compile(
    r"(?:(?:google-bert|facebookai|distilbert|microsoft|google|facebook|openai-community|answerdotai)/)?"
    r"(?:bert-(?:base|large)-(?:un)?cased|(?:xlm-)?roberta-(?:base|large)|distil(?:bert-base-(?:un)?cased|roberta-base)"
    r"|deberta(?:-v3)?-(?:x?small|base|large)|electra-(?:small|base|large)-discriminator|albert-base-v[12]|modernbert-(?:base|large)"
    r"|(?:distil)?gpt2|vit-(?:base|large)-patch16-224-in21k|wav2vec2-(?:base|large)|opt-\d+m|qwen/qwen2(?:\.5)?-[\d.]+b(?:-instruct)?)"
    r"|qwen/qwen2(?:\.5)?-[\d.]+b(?:-instruct)?",
    re.IGNORECASE,
)
"""Checkpoints that have no head for any of these tasks."""


class SeededAfterModel(Check):
    def rehearse(self, entry: Entry) -> Iterator[Fault]:
        """Seeds of all generators that come after the random weights of the model which is trained, and before its training."""
        for path in entry.paths:
            seed = _first_seed(path)
            if seed is None:
                continue
            trained = _trained(path, seed)
            late = next((each for each in trained if each.made < seed.time and _has_random_weights(each)), None)
            if late is not None and not any(each.time < seed.time for each in path.of(StateLoaded)):
                message = "the weights that the model begins with were drawn before this seed: each run has others"
                yield Fault.at(seed, message)


def _first_seed(path: Path) -> Called | None:
    """What seeds all generators, if nothing was seeded before, nor perhaps."""
    first = next((each for each in path.of(Called) if _SEEDS.search(each.path) and each.receiver is None), None)
    if first is None or not _ALL.match(first.path) or is_constant(first.argument("seed", 0), None):
        return None
    unknown = (str(getattr(each.callee, "hint", "")) for each in path.of(CalledUnknown) if each.time < first.time)
    return None if any("seed" in name or "random" in name for name in unknown) else first


def _trained(path: Path, seed: Event) -> list[Module]:
    """The models that training begins with behind a seed, if none began before."""
    runs = [each for each in path.of(TrainerRan) if each.method == "train"]
    passes = path.of(Backward)
    if any(each.time < seed.time for each in (*runs, *passes)):
        return []
    found = [model for each in runs if (model := base_of(each.model)) is not None]
    owners = (each.owner for event in passes[:1] for each in event.parameters)
    whole = [part for each in found for part in each.modules()]
    return [*whole, *(each for each in owners if each is not None)]


def _has_random_weights(model: Module) -> bool:
    """Whether some weights of a model are drawn where it is made: of a layer, or of the head that a checkpoint has not."""
    if not isinstance(model.cls, Library) or model.open_arguments:
        return False
    if model.cls.path.startswith("torch.nn."):
        return bool(model.own) and not any(each.changed_by_hand for each in model.own)
    headed = model.cls.path.startswith("transformers.") and _HEADED.search(model.name) is not None
    return headed and _BARE.fullmatch(name_of(model) or "") is not None
