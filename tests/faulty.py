"""A program with one fault, for the tests of everything around the rules."""

FAULT = """import torch

def train(model, loader, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
