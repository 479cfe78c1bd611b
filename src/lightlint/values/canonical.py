"""One name for one thing: folds the import paths under which a library offers the same object."""

from __future__ import annotations

import re
from functools import lru_cache

LIGHTNING = ("lightning", "pytorch_lightning")  # one library under two names, which share no class
LIBRARIES = ("torch", *LIGHTNING)  # whose names `canonical` knows
_PREFIXES = (
    ("pytorch_lightning.", "lightning."),
    ("lightning.pytorch.", "lightning."),
    ("lightning_fabric.", "lightning.fabric."),
    ("lightning_lite.", "lightning.fabric."),
)
_ROOTS = {
    "pytorch_lightning": "lightning",
    "lightning.pytorch": "lightning",
    "lightning_fabric": "lightning.fabric",
    "lightning_lite": "lightning.fabric",
}
# what Lightning exports at its top as well as from the modules that define it
_LIGHTNING_TOP = {"Trainer", "LightningModule", "LightningDataModule", "Callback"}
# functions that Fabric's and the Trainer's packages both offer
_LIGHTNING_BOTH = {
    "seed_everything": "lightning.seed_everything",
    **{
        f"rank_zero_{what}": f"lightning.utilities.rank_zero_{what}"
        for what in ("only", "info", "warn", "debug", "deprecation")
    },
}
_LIGHTNING_ROOMS = ("callbacks", "loggers", "strategies", "profilers", "plugins", "tuner", "cli", "accelerators")
_TORCH = (
    (re.compile(r"torch\.nn\.modules\.(?:\w+\.)?([A-Z]\w*)$"), r"torch.nn.\1"),
    (re.compile(r"torch\.nn\.parallel\.(?:distributed\.)?DistributedDataParallel$"), "torch.nn.parallel.DistributedDataParallel"),
    (re.compile(r"torch\.nn\.parallel\.(?:data_parallel\.)?DataParallel$"), "torch.nn.DataParallel"),
    (re.compile(r"torch\.nn\.parameter\.(\w+)$"), r"torch.nn.\1"),
    (re.compile(r"torch\.nn\.utils\.clip_grad\.(\w+)$"), r"torch.nn.utils.\1"),
    (re.compile(r"torch\.optim\.(?!lr_scheduler|swa_utils)[a-z_0-9]+\.([A-Z]\w*)$"), r"torch.optim.\1"),
    (re.compile(r"torch\.utils\.data\.(?:_utils\.)?[a-z_]+\.([A-Z]\w*|random_split|default_collate|get_worker_info)$"), r"torch.utils.data.\1"),
    (re.compile(r"torch\.distributed\.distributed_c10d\.(\w+)$"), r"torch.distributed.\1"),
    (re.compile(r"torch\.distributed\.fsdp\.[a-z_]+\.(FullyShardedDataParallel)$"), r"torch.distributed.fsdp.\1"),
    (re.compile(r"torch\.multiprocessing\.spawn\.spawn$"), "torch.multiprocessing.spawn"),
    (re.compile(r"torch\.(?:cuda|cpu)\.amp\.(?:grad_scaler|autocast_mode)\.(\w+)$"), r"torch.cuda.amp.\1"),
    (re.compile(r"torch\.amp\.(?:grad_scaler|autocast_mode)\.(\w+)$"), r"torch.amp.\1"),
    (re.compile(r"torch\.autograd\.(?:grad_mode\.)?(no_grad|enable_grad|set_grad_enabled|inference_mode)$"), r"torch.\1"),
    (re.compile(r"torch\.autograd\.variable\.Variable$"), "torch.autograd.Variable"),
    (re.compile(r"torch\.cuda\.(?:memory|random|streams|graphs)\.(\w+)$"), r"torch.cuda.\1"),
    (re.compile(r"torch\.(?:random|serialization)\.(manual_seed|seed|initial_seed|get_rng_state|set_rng_state|save|load)$"), r"torch.\1"),
    (re.compile(r"torch\.autocast$"), "torch.amp.autocast"),
)  # fmt: skip


_HUGGING_FACE = re.compile(
    r"(?:(transformers|trl|peft|accelerate|diffusers)\.(?:[a-z_]\w*\.)+"
    r"|(datasets)\.(?:arrow_dataset|dataset_dict|iterable_dataset|builder|info|splits|features\.[a-z]\w*|features)\.)"
    r"(?=[A-Z]\w*[a-z])"
)
"""The room of a class that the package offers at its top, too; any other below `datasets` may be a folder of the program."""
_HUGGING_FACE_ROOTS = ("transformers.", "trl.", "peft.", "accelerate.", "datasets.", "diffusers.")


@lru_cache(maxsize=10_000)  # files ask for the same names of libraries again and again
def canonical(name: str) -> str:
    """Fold a full dotted name: `pytorch_lightning.Trainer`, `lightning.pytorch.Trainer` and `lightning.Trainer` are one.

    Lightning's names start with `lightning.` (Fabric's with `lightning.fabric.`), torch's are those of its public pages.
    """
    if name.startswith("torch."):
        for pattern, replacement in _TORCH:
            if pattern.match(name):
                return pattern.sub(replacement, name)
        return name
    if name.startswith(_HUGGING_FACE_ROOTS):
        return _HUGGING_FACE.sub(r"\1\2.", name, count=1)
    if name in _ROOTS:
        return _ROOTS[name]
    for prefix, replacement in _PREFIXES:
        if name.startswith(prefix):
            name = replacement + name[len(prefix) :]
            break
    return _lightning(name) if name.startswith("lightning.") else name


def _lightning(name: str) -> str:
    parts = name.split(".")
    last = parts[-1]
    if last == "Fabric" and parts[1] in {"Fabric", "fabric"}:
        return "lightning.fabric.Fabric"
    if last in _LIGHTNING_BOTH and parts[1] in {last, "fabric", "utilities"}:
        return _LIGHTNING_BOTH[last]
    if last in {"LightningCLI", "LightningArgumentParser", "SaveConfigCallback"} and parts[1] in {"cli", "utilities"}:
        return f"lightning.cli.{last}"
    if parts[1] == "fabric":
        return name
    if last in _LIGHTNING_TOP and parts[1] in {last, "core", "trainer", "callbacks", "utilities"}:
        return f"lightning.{last}"
    if len(parts) > 3 and parts[1] in _LIGHTNING_ROOMS and last[:1].isupper():
        return f"lightning.{parts[1]}.{last}"
    return name


def absolute(module: str, level: int, package: str) -> str:
    """The full name of a module that a relative import of `level` dots names; it keeps a dot where no package is known.

    The dot keeps `from .torch import x`, in a folder that is no package, apart from the library of that name.
    """
    parents = package.split(".") if package else []
    kept = parents[: max(0, len(parents) - (level - 1))] or [""]
    return ".".join([*kept, module] if module else kept)
