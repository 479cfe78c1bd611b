"""Training programs of many kinds, each a few steps long: `python zoo.py NAME` trains, on a GPU where there is one.

With a GPU it prints the peak of `torch.cuda.max_memory_allocated` over the steps behind the first, in bytes. What
`tests/benchmarks/forecast.py` compares with the forecast made without one.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # as everyone writes it
from torch import nn
from torch.utils.data import DataLoader

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
STEPS = 4


@dataclass
class Program:
    """A model, its batch and how it trains."""

    model: Callable[[], nn.Module]
    batch: Callable[[], Any]
    loss: Callable[[nn.Module, Any], torch.Tensor]
    optimizer: Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer] = torch.optim.AdamW
    autocast: torch.dtype | None = None
    accumulate: int = 1
    average: bool = False


def images(count: int, size: int = 224) -> Callable[[], Any]:
    return lambda: (torch.randn(count, 3, size, size), torch.randint(0, 1000, (count,)))


def tokens(count: int, length: int, words: int = 30_000) -> Callable[[], Any]:
    return lambda: torch.randint(0, words, (count, length))


def classified(model: nn.Module, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]), batch[1])


def told(model: nn.Module, batch: Any) -> torch.Tensor:
    return model(input_ids=batch, labels=batch).loss


def torchvision_model(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torchvision

        return torchvision.models.get_model(name, weights=None)

    return make


def timm_model(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import timm

        return timm.create_model(name, pretrained=False)

    return make


def gpt2(**settings: Any) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    checkpointing = settings.pop("checkpointing", False)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=30_000, use_cache=False, **settings))
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(vocab_size=30_000))


def t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(T5Config(vocab_size=30_000, use_cache=False, decoder_start_token_id=0))


class Tagger(nn.Module):
    """A recurrent network over embedded words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30_000, 512)
        self.recurrent = nn.LSTM(512, 1024, num_layers=2, batch_first=True)
        self.head = nn.Linear(1024, 200)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(self.words(batch))[0])


def tagged(model: nn.Module, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch).flatten(0, 1), batch.flatten() % 200)


def tower() -> nn.Module:
    """Convolutions at full resolution."""
    widths = [3, 64, 64, 128, 128, 256]
    layers: list[nn.Module] = []
    for one, other in pairwise(widths):
        layers += [nn.Conv2d(one, other, 3, padding=1), nn.BatchNorm2d(other), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000))


def sgd(parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


PROGRAMS = {
    "resnet50, fp32, AdamW": Program(torchvision_model("resnet50"), images(64), classified),
    "resnet50, fp16 with scaler, SGD": Program(
        torchvision_model("resnet50"), images(64), classified, sgd, torch.float16
    ),
    "resnet18, averaged weights": Program(torchvision_model("resnet18"), images(128), classified, sgd, average=True),
    "vit_b_16, fp32, AdamW": Program(torchvision_model("vit_b_16"), images(32), classified),
    "vit_b_16, bf16, AdamW": Program(torchvision_model("vit_b_16"), images(32), classified, autocast=torch.bfloat16),
    "vit_small (timm), accumulated": Program(timm_model("vit_small_patch16_224"), images(32), classified, accumulate=4),
    "convnext_tiny (timm), bf16": Program(timm_model("convnext_tiny"), images(32), classified, autocast=torch.bfloat16),
    "efficientnet_b0 (timm), SGD": Program(timm_model("efficientnet_b0"), images(64), classified, sgd),
    "conv tower 256 px, fp32": Program(tower, images(32, 256), classified),
    "gpt2 12 x 768, 512 tokens, bf16": Program(gpt2, tokens(8, 512), told, autocast=torch.bfloat16),
    "gpt2, checkpointed, bf16": Program(
        lambda: gpt2(checkpointing=True), tokens(8, 512), told, autocast=torch.bfloat16
    ),
    "bert base, 256 tokens, fp32": Program(bert, tokens(16, 256), told),
    "t5 small, 256 tokens, fp32": Program(t5, tokens(16, 256), told),
    "lstm 2 x 1024, 256 tokens, SGD": Program(Tagger, tokens(64, 256), tagged, sgd),
}


def measured(step: int) -> None:
    """Begin to look for the peak behind the first step: the optimizer's state is there from then on."""
    if CUDA and step == 1:
        torch.cuda.reset_peak_memory_stats()


def train(program: Program) -> None:
    model = program.model().to(DEVICE)
    model.train()
    averaged = torch.optim.swa_utils.AveragedModel(model) if program.average else None
    optimizer = program.optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=CUDA and program.autocast is torch.float16)
    for number, batch in enumerate(DataLoader([program.batch()] * STEPS * program.accumulate, batch_size=None)):
        measured(number // program.accumulate)
        batch = moved(batch)
        with torch.autocast("cuda", program.autocast or torch.float16, enabled=program.autocast is not None):
            loss = program.loss(model, batch) / program.accumulate
        scaler.scale(loss).backward()
        if (number + 1) % program.accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if averaged is not None:
                averaged.update_parameters(model)


def moved(batch: Any) -> Any:
    return tuple(each.to(DEVICE) for each in batch) if isinstance(batch, tuple | list) else batch.to(DEVICE)


def adversaries() -> None:
    """A GAN: two networks, two optimizers, one batch for both."""
    widths = [512, 256, 128, 64]
    makes: list[nn.Module] = [nn.ConvTranspose2d(100, widths[0], 4)]
    for one, other in zip(widths, [*widths[1:], 3], strict=True):
        makes += [nn.BatchNorm2d(one), nn.ReLU(), nn.ConvTranspose2d(one, other, 4, 2, 1)]
    maker = nn.Sequential(*makes, nn.Tanh()).to(DEVICE)
    judges: list[nn.Module] = []
    for one, other in zip([3, *widths[::-1][:-1]], widths[::-1], strict=True):
        judges += [nn.Conv2d(one, other, 4, 2, 1), nn.LeakyReLU(0.2)]
    judge = nn.Sequential(*judges, nn.Conv2d(widths[0], 1, 4), nn.Flatten()).to(DEVICE)
    optimizers = [torch.optim.Adam(each.parameters(), lr=2e-4) for each in (judge, maker)]
    for number, real in enumerate(DataLoader([torch.randn(256, 3, 64, 64)] * STEPS, batch_size=None)):
        measured(number)
        real = real.to(DEVICE)
        made = maker(torch.randn(len(real), 100, 1, 1, device=DEVICE))
        optimizers[0].zero_grad()
        (F.softplus(-judge(real)).mean() + F.softplus(judge(made.detach())).mean()).backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        F.softplus(-judge(made)).mean().backward()
        optimizers[1].step()


NAMES = [*PROGRAMS, "dcgan, two optimizers"]


def main() -> None:
    name = sys.argv[1]
    torch.manual_seed(0)
    if name in PROGRAMS:
        train(copy.copy(PROGRAMS[name]))
    else:
        adversaries()
    if CUDA:
        print(f"peak {torch.cuda.max_memory_allocated()} reserved {torch.cuda.max_memory_reserved()}")


if __name__ == "__main__":
    main()
