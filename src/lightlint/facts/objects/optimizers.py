"""Optimizers of other libraries than torch: each of their classes is a `torch.optim.Optimizer`."""

from __future__ import annotations

import re
from functools import lru_cache

# the modules of which all classes with such a name are optimizers
_ROOMS = (
    r"(?:transformers|pytorch_transformers|pytorch_pretrained_bert)(?:\.optimization)?\.(?:AdamW|Adafactor|LayerWiseDummyOptimizer|BertAdam|OpenAIAdam)",
    r"bitsandbytes\.optim\.(?:\w+\.)?(?:Adam|AdamW|SGD|Lion|LAMB|LARS|RMSprop|Adagrad|AdEMAMix|PagedAdam|PagedAdamW|PagedLion"
    r"|PagedAdEMAMix)(?:8bit|32bit)?",
    r"(?:apex|transformer_engine\.pytorch|deepspeed\.ops)\.(?:contrib\.)?(?:optimizers|adam|lamb|lion|adagrad)\.(?:\w+\.)?"
    r"(?:Fused|DeepSpeedCPU|Distributed\w*)(?:Adam|SGD|LAMB|Lamb|Lion|NovoGrad|Adagrad|MixedPrecisionLamb)",
    r"timm\.optim\.(?:\w+\.)?(?!ParamGroup|Optim(?!izer)|List)[A-Z]\w*",
    r"torch_optimizer\.[A-Z]\w*",
    r"pytorch_optimizer\.(?:optimizer\.)?(?:\w+\.)?(?!.*(?:LR|Scheduler|Loss)$)[A-Z]\w*",
    r"torchao\.(?:prototype\.low_bit_)?optim\.(?:\w+\.)?(?:_?Adam\w*|CPUOffloadOptimizer)",
    r"lion_pytorch\.Lion|adabelief_pytorch\.AdaBelief|prodigyopt\.Prodigy|madgrad\.\w*MADGRAD|adamp\.(?:AdamP|SGDP)",
    r"dadaptation\.DAdapt\w+|galore_torch\.\w*GaLore\w+|sophia\.Sophia\w+|came_pytorch\.CAME|adam_atan2_pytorch\.\w*AdamAtan2",
    r"schedulefree\.(?:SGD|AdamW|RAdam)ScheduleFree(?:Closure|Reference)?|ranger(?:21|_adabelief)?\.Ranger\w*|optimi\.[A-Z]\w*",
    r"opacus\.optimizers\.(?:\w+\.)?\w*DPOptimizer\w*|fairscale\.optim\.(?:\w+\.)?(?:OSS|Adam|AdaScale)",
    r"torch\.distributed\.optim\.(?:\w+\.)?ZeroRedundancyOptimizer",
)
# functions that give one
_FACTORIES = r"timm\.optim\.(?:optim_factory\.|_optim_factory\.)?create_optimizer(?:_v2)?"
_KNOWN = re.compile("|".join((*_ROOMS, _FACTORIES)))


@lru_cache(maxsize=10_000)
def is_library_optimizer(name: str) -> bool:
    """Whether a full name is a class of optimizers, or a function that makes one, of a library besides `torch.optim`."""
    return _KNOWN.fullmatch(name) is not None
