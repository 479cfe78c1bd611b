"""One name for one thing: folds the import paths under which a library offers the same object."""

from __future__ import annotations

import re

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
# classes that Lightning exports at its top as well as from the modules that define them
_LIGHTNING_TOP = {
    "Trainer", "LightningModule", "LightningDataModule", "Callback", "Fabric", "seed_everything",
}  # fmt: skip
_LIGHTNING_ROOMS = ("callbacks", "loggers", "strategies", "profilers", "plugins", "tuner", "cli", "accelerators")
_TORCH = (
    (re.compile(r"torch\.nn\.modules\.(?:\w+\.)?([A-Z]\w*)$"), r"torch.nn.\1"),
    (re.compile(r"torch\.nn\.parallel\.(?:distributed\.)?DistributedDataParallel$"), "torch.nn.parallel.DistributedDataParallel"),
    (re.compile(r"torch\.nn\.parallel\.(?:data_parallel\.)?DataParallel$"), "torch.nn.DataParallel"),
    (re.compile(r"torch\.nn\.parameter\.(Parameter|Buffer)$"), r"torch.nn.\1"),
    (re.compile(r"torch\.optim\.(?!lr_scheduler|swa_utils)[a-z_0-9]+\.([A-Z]\w*)$"), r"torch.optim.\1"),
    (re.compile(r"torch\.utils\.data\.[a-z_]+\.([A-Z]\w*|random_split|default_collate|get_worker_info)$"), r"torch.utils.data.\1"),
    (re.compile(r"torch\.distributed\.distributed_c10d\.(\w+)$"), r"torch.distributed.\1"),
    (re.compile(r"torch\.multiprocessing\.spawn\.spawn$"), "torch.multiprocessing.spawn"),
    (re.compile(r"torch\.(?:cuda|cpu)\.amp\.(?:grad_scaler|autocast_mode)\.(\w+)$"), r"torch.cuda.amp.\1"),
    (re.compile(r"torch\.amp\.(?:grad_scaler|autocast_mode)\.(\w+)$"), r"torch.amp.\1"),
    (re.compile(r"torch\.autograd\.(?:grad_mode|variable)\.(\w+)$"), r"torch.\1"),
    (re.compile(r"torch\.autograd\.(no_grad|enable_grad|set_grad_enabled|inference_mode)$"), r"torch.\1"),
)  # fmt: skip


def canonical(name: str) -> str:
    """Fold a full dotted name: `pytorch_lightning.Trainer`, `lightning.pytorch.Trainer` and `lightning.Trainer` are one.

    Lightning's names start with `lightning.` (Fabric's with `lightning.fabric.`), torch's are those of its public pages.
    """
    if name.startswith("torch."):
        for pattern, replacement in _TORCH:
            if pattern.match(name):
                return pattern.sub(replacement, name)
        return name
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
    if last == "Fabric":
        return "lightning.fabric.Fabric"
    if parts[1] == "fabric":
        return name
    if last in _LIGHTNING_TOP and parts[1] in {last, "core", "trainer", "callbacks", "utilities"}:
        return f"lightning.{last}"
    if len(parts) > 3 and parts[1] in _LIGHTNING_ROOMS and last[:1].isupper():
        return f"lightning.{parts[1]}.{last}"
    if parts[1] == "utilities" and last in {"rank_zero_only", "rank_zero_info", "rank_zero_warn"}:
        return f"lightning.utilities.{last}"
    return name
