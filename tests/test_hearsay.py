"""What annotations, names and uses tell of values whose making is out of sight."""

from __future__ import annotations

import pytest
from rehearsing import entries_of, main_of, names_of

from lightlint.engine.events import Backward, Forward, Stepped
from lightlint.values.core import Sequence, Unknown
from lightlint.values.training import Module, Optimizer, Tensor

_LOOP = """
import torch
from torch import nn
from somewhere import build, build_optimizer, DeepLoss
{made}
for x, y in torch.utils.data.DataLoader([]):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("model = build()\noptimizer = torch.optim.SGD(model.parameters())", "nn.functional.mse_loss(model(x), y)"),
        ("model = nn.DataParallel(build(3))\noptimizer = torch.optim.SGD(model.parameters())", "model(x).mean()"),
        ("model = nn.Linear(1, 1)\noptimizer = build_optimizer(model)", "nn.functional.mse_loss(model(x), y)"),
        ("model = nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters())", "DeepLoss(model(x), y)"),
        (
            "model = nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters())",
            "nn.parallel.data_parallel(model, x).mean()",
        ),
    ],
)
def test_use_tells_what_is_out_of_sight(made: str, loss: str) -> None:
    [path] = entries_of(_LOOP.format(made=made, loss=loss))[0].paths
    assert [bool(event.parameters) for event in path.of(Backward)] == [True, True]
    assert [event.parameters for event in path.of(Stepped)] == [event.parameters for event in path.of(Backward)]


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("nn.Module", Module),
        ("'nn.Module'", Module),
        ("Optional[nn.Module]", Module),
        ("nn.Module | None", Module),
        ("Union[nn.Module, None]", Module),
        ("Annotated[nn.Module, 'a net']", Module),
        ("'Float[torch.Tensor, \"batch 3\"]'", Tensor),
        ("torch.optim.Optimizer", Optimizer),
        ("list[nn.Module]", Sequence),
        ("Sequence[nn.Module]", Sequence),
        ("tuple[nn.Module, ...]", Sequence),
        ("dict[str, nn.Module]", Unknown),
        ("nn.Module | torch.Tensor", Unknown),
        ("Optional[int]", Unknown),
    ],
)
def test_annotations_tell(annotation: str, kind: type) -> None:
    text = f"""
import torch
from torch import nn
from typing import Annotated, Optional, Sequence, Union
from jaxtyping import Float
from elsewhere import make

class Holder:
    held: {annotation}

    def __init__(self):
        fill(self)

def made() -> {annotation}:
    return make()

def given(it: {annotation}):
    return it

returned, taken, attribute = made(), given(make()), Holder().held
"""
    names = names_of(main_of(text))
    found = [type(names[each]) for each in ("returned", "taken", "attribute")]
    assert found == [kind] * 3


def test_what_is_asserted_of_an_entrys_arguments_is_so() -> None:
    text = """
from torch import nn

class Trainer:
    def __init__(self, model, device=None):
        assert device, "say which"
        self.model = model

    def train(self, x, y):
        assert x.shape == y.shape
        nn.functional.mse_loss(self.model(x), y).backward()
"""
    events = [event for entry in entries_of(text) for event in entry.of(Backward)]
    assert events
    assert all(event.parameters for event in events)


@pytest.mark.parametrize(
    "search",
    [
        "for place in places:\n        found = place.get(name)\n        if found is not None:\n            return found\n    raise KeyError(name)",
        "for place in places:\n        if place.fits(name):\n            break\n    else:\n        raise KeyError(name)\n    return place",
    ],
)
def test_a_search_finds_something(search: str) -> None:
    text = f"""
import torch

def find(places, name):
    {search}

def train(places, name, model):
    scale = find(places, name)
    (model(torch.ones(1)).sum() * scale).backward()
"""
    assert any(entry.paths[0].of(Backward) for entry in entries_of(text))


def test_blocks_that_repeat_are_seen_whole() -> None:
    text = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x):
        return torch.relu(self.layer(x)) + x

class Net(nn.Sequential):
    def __init__(self):
        super().__init__()
        for name in ("a", "b", "c", "d"):
            self.add_module(name, Block())

    def forward(self, x):
        return super().forward(x) * 2

net = Net()
net(torch.ones(1)).sum().backward()
"""
    machine = main_of(text)
    [backward] = [event for event in machine.events if isinstance(event, Backward)]
    [forward] = [event for event in machine.events if isinstance(event, Forward)]
    assert len(backward.parameters) == len(forward.parameters) == 4
