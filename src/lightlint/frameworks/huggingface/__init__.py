"""The Hugging Face libraries: Transformers, Datasets, PEFT, TRL, Evaluate."""

from lightlint.frameworks.huggingface import adapters, pretrained, rows, tokenizers, trainer  # noqa: F401 - register themselves
