"""lightlint: a static analyzer for PyTorch and PyTorch Lightning training code."""

__version__ = "0.1.0"
