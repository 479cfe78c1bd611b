"""Trains a model that a factory makes on batches that another makes: `python driver.py MODEL BATCH OPTIMIZER`."""

import importlib
import sys


def _named(path):
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _loss(result):
    """A scalar of whatever a model returns: its loss where it says one, else the mean of its first floating tensor."""
    import torch
    from torch.utils._pytree import tree_leaves

    if getattr(result, "loss", None) is not None:
        return result.loss
    floats = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    return floats[0].float().mean()


def main():
    sys.path.insert(0, "")
    import torch
    from torch.utils.data import DataLoader

    model, batch = _named(sys.argv[1])(), _named(sys.argv[2])()
    if not isinstance(model, torch.nn.Module) or batch is None:
        raise TypeError(
            f"{sys.argv[1]} made {type(model).__name__} and {sys.argv[2]} {type(batch).__name__}, no model and batch"
        )
    model.train()
    optimizer = getattr(torch.optim, sys.argv[3])(model.parameters(), lr=1e-3)
    for given in DataLoader([batch] * 1_000, batch_size=None):
        if isinstance(given, dict):
            loss = _loss(model(**given))
        elif isinstance(given, (list, tuple)):
            loss = _loss(model(*given))
        else:
            loss = _loss(model(given))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
