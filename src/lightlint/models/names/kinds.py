"""What a library's class is to training, by its canonical name."""

from __future__ import annotations

import re
from functools import cache

from lightlint.models.names import huggingface
from lightlint.values.core import Class, Library, Unknown

OPTIMIZERS = frozenset(
    [
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "LBFGS",
        "ASGD",
        "SparseAdam",
        "Rprop",
        "Adafactor",
        "Lion",
        "Muon",
        "LAMB",
        "Lamb",
        "NovoGrad",
        "FusedAdam",
        "FusedSGD",
        "FusedLAMB",
        "AdamW8bit",
        "Adam8bit",
        "SGD8bit",
        "PagedAdamW",
        "PagedAdamW8bit",
        "AdaBelief",
        "Ranger",
        "SAM",
        "AdamP",
        "SGDP",
        "MADGRAD",
        "CPUAdam",
        "DeepSpeedCPUAdam",
        "Prodigy",
        "Sophia",
        "Shampoo",
    ]
)
SCHEDULE_LENGTHS: dict[str, tuple[str, int]] = {
    "OneCycleLR": ("total_steps", 2),
    "CosineAnnealingLR": ("T_max", 1),
    "StepLR": ("step_size", 1),
    "PolynomialLR": ("total_iters", 1),
    "LinearLR": ("total_iters", 3),
    "get_linear_schedule_with_warmup": ("num_training_steps", 2),
    "get_cosine_schedule_with_warmup": ("num_training_steps", 2),
    "get_polynomial_decay_schedule_with_warmup": ("num_training_steps", 2),
    "get_cosine_with_hard_restarts_schedule_with_warmup": ("num_training_steps", 2),
    "LinearWarmupCosineAnnealingLR": ("max_epochs", 2),
    "get_scheduler": ("num_training_steps", 3),
}
"""The argument that says after how many steps a schedule ends, and its position."""

WITHOUT_PARAMETERS = frozenset(
    [
        "ReLU",
        "LeakyReLU",
        "GELU",
        "SiLU",
        "Tanh",
        "ELU",
        "SELU",
        "CELU",
        "Mish",
        "Softplus",
        "Softsign",
        "ReLU6",
        "Hardtanh",
        "Hardswish",
        "Hardsigmoid",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "Flatten",
        "Unflatten",
        "MaxPool1d",
        "MaxPool2d",
        "MaxPool3d",
        "AvgPool1d",
        "AvgPool2d",
        "AvgPool3d",
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "Identity",
        "Upsample",
        "PixelShuffle",
        "PixelUnshuffle",
        "ZeroPad2d",
        "ConstantPad2d",
        "Softmax",
        "LogSoftmax",
        "Sigmoid",
        "Softmax2d",
        "LogSigmoid",
        "Softmin",
        "Module",
        "ModuleList",
        "ModuleDict",
        "Sequential",
        "ParameterList",
        "ParameterDict",
        "CosineSimilarity",
        "Fold",
        "Unfold",
        "ReflectionPad2d",
        "ReplicationPad2d",
        "PairwiseDistance",
        "GLU",
        "UpsamplingBilinear2d",
        "UpsamplingNearest2d",
        "Threshold",
        "RReLU",
        "DropPath",
        "Rearrange",
        "Reduce",
        "Hardshrink",
        "Softshrink",
        "ChannelShuffle",
        "FeatureAlphaDropout",
        "LocalResponseNorm",
        "CrossMapLRN2d",
        "AdaptiveMaxPool3d",
        "FractionalMaxPool2d",
        "FractionalMaxPool3d",
        "MaxUnpool1d",
        "MaxUnpool2d",
        "MaxUnpool3d",
        "LPPool1d",
        "LPPool2d",
        "LPPool3d",
        "CircularPad1d",
        "CircularPad2d",
        "CircularPad3d",
        "ConstantPad1d",
        "ConstantPad3d",
        "ReflectionPad1d",
        "ReflectionPad3d",
        "ReplicationPad1d",
        "ReplicationPad3d",
        "ZeroPad1d",
        "ZeroPad3d",
        "Tanhshrink",
    ]
)
AFFINE: dict[str, tuple[str, int, bool]] = {
    **{f"BatchNorm{each}d": ("affine", 3, True) for each in "123"},
    **{f"InstanceNorm{each}d": ("affine", 3, False) for each in "123"},
    "SyncBatchNorm": ("affine", 3, True),
    "GroupNorm": ("affine", 3, True),
    "LayerNorm": ("elementwise_affine", 2, True),
    "RMSNorm": ("elementwise_affine", 2, True),
}
"""The argument that says whether a layer has parameters, its position, and whether it has them by default."""
BY_MODE = re.compile("Dropout|BatchNorm|InstanceNorm|SyncBatchNorm|LSTM|GRU|RNN|Transformer|RReLU")
"""Layers that compute something else in eval mode (recurrent and Transformer layers: where their dropout is not 0)."""

_NO_TRANSFORMS = frozenset(["InterpolationMode", "AutoAugmentPolicy", "Transform"])
_WRAPPERS = {
    "DistributedDataParallel": "ddp",
    "DataParallel": "data-parallel",
    "FullyShardedDataParallel": "fsdp",
}


AVERAGES = ("diffusers.EMAModel", "torch_ema.ExponentialMovingAverage", "torch_ema.ema.ExponentialMovingAverage")
"""Moving averages of parameters that can be put into a model, and what it had put back."""
REGION_LOSSES = ("monai.losses.", "segmentation_models_pytorch.losses.")
"""Where the losses are that compare regions, such as that of Dice."""
MIXER = "mixer"
"""What mixes the examples of a batch, and their targets."""
_MIXERS = re.compile(r"timm\.data\.(?:mixup\.)?Mixup|torchvision\.transforms\.v2\.(?:MixUp|CutMix)")
REGION_NETS = ("monai.networks.nets.", "segmentation_models_pytorch.")


@cache
def kind_of(path: str) -> str | None:
    """What the class of a library is to training, None for nothing."""
    root, last = path.partition(".")[0], path.rpartition(".")[2]
    if not last[:1].isupper():
        return "schedule" if last in SCHEDULE_LENGTHS and root in ("transformers", "diffusers") else None
    if last == "LightningModule" or path == "torch.nn.Module":
        return "module"
    if last == "LightningDataModule":
        return "data module"
    if path == "lightning.Trainer":
        return "trainer"
    if path == "lightning.cli.LightningCLI":
        return "cli"
    if path == "lightning.fabric.Fabric":
        return "fabric"
    if root == "accelerate" and last == "Accelerator":
        return "accelerator"
    if last == "GradScaler":
        return "scaler"
    if last in _WRAPPERS and root == "torch":
        return "module"
    if root == "torch_geometric" and last in ("NeighborLoader", "NeighborSampler", "LinkNeighborLoader", "HGTLoader"):
        return "loader"
    if last in ("DataLoader", "StatefulDataLoader") and root in ("torch", "torchdata", "torch_geometric"):
        return "loader"
    if last.endswith("Sampler") and root in ("torch", "lightning"):
        return "sampler"
    if root == "torch" and path.startswith("torch.utils.data.") and (last.endswith("Dataset") or last == "Subset"):
        return "data set"
    if root == "torchvision" and path.startswith("torchvision.datasets."):
        return "data set"
    if _MIXERS.fullmatch(path):
        return MIXER
    if path.startswith(("torchvision.transforms.", "albumentations.")) and last not in _NO_TRANSFORMS:
        return "transform"
    if root == "lightning" and (last == "Callback" or ".callbacks." in path):
        return "callback"
    if (root == "torch" and ".lr_scheduler." in path) or last in SCHEDULE_LENGTHS:
        return "schedule"
    if (root == "torch" and path.startswith("torch.optim.")) or (
        root
        in ("bitsandbytes", "timm", "transformers", "apex", "torch_optimizer", "deepspeed", "lion_pytorch", "pl_bolts")
        and last in OPTIMIZERS
    ):
        return "optimizer"
    if root == "torchmetrics" and ".functional." not in path:
        return "metric"
    if (
        path.startswith("torch.nn.")
        and ".utils." not in path
        and last not in ("Parameter", "Buffer", "UninitializedParameter")
    ):
        return "module"
    if path.startswith((*REGION_LOSSES, *REGION_NETS)):
        return "module"
    if path.startswith(("timm.layers.", "timm.models.layers.", "timm.loss.", "einops.layers.torch.")):
        return "module"
    if path in AVERAGES:
        return "average"
    if path.startswith("torch.distributions."):
        return "distribution"
    if root in huggingface.ROOTS:
        return huggingface.kind_of(root, last)
    if path in ("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"):
        return "path"
    return None


def wrapper_of(last: str) -> str:
    """What kind of wrapper a class is, "" for none."""
    return _WRAPPERS.get(last, "")


def kind_of_class(cls: Class | Library) -> str:
    """What an instance of a class is to training; "object" for nothing, "unknown" where a base is out of sight."""
    lineage = cls.lineage() if isinstance(cls, Class) else [cls]
    for each in lineage:
        if isinstance(each, Library):
            kind = kind_of(each.path)
            if kind is not None:
                return kind
    if any(isinstance(each, Unknown) for each in lineage):
        return "unknown"
    plain = ("builtins", "abc", "typing", "enum", "collections", "dataclasses", "typing_extensions", "Protocol")
    if all(not isinstance(each, Library) or each.path.partition(".")[0] in plain for each in lineage):
        return "object"
    return "unknown"
