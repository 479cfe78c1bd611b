"""Frameworks that train in their own way and that lightlint does not know: what they do with a model is not looked at."""

from __future__ import annotations

import re

STRANGERS = [
    "allennlp",
    "axolotl",
    "catalyst",
    "colossalai",
    "composer",
    "deepspeed",
    "detectron2",
    "fairseq",
    "fastai",
    "flax",
    "haiku",
    "horovod",
    "ignite",
    "jax",
    "keras",
    "llamafactory",
    "megatron",
    "mindspore",
    "mmcv",
    "mmdet",
    "mmengine",
    "mxnet",
    "nemo",
    "optax",
    "paddle",
    "poutyne",
    "rl_games",
    "sb3_contrib",
    "skorch",
    "speechbrain",
    "stable_baselines3",
    "tensorflow",
    "tianshou",
    "torchtune",
    "torchrl",
    "ultralytics",
    "unsloth",
]
_IMPORT = re.compile(rf"^[ \t]*(?:import|from)[ \t]+({'|'.join(STRANGERS)})\b", re.MULTILINE)


def strangers_in(text: str) -> tuple[str, ...]:
    """The frameworks of which a text imports something and that no rule knows, each once, in their order."""
    return tuple(dict.fromkeys(_IMPORT.findall(text)))
