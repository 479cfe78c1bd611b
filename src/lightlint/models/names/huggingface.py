"""What the classes of the Hugging Face libraries are to training."""

from __future__ import annotations

TRAINER, ARGUMENTS, COLLATOR = "hf trainer", "training arguments", "collator"
TOKENIZER, ADAPTER, QUANTIZATION, ROWS = "tokenizer", "adapter config", "quantization", "rows"
TEXT_METRIC, WATCHER, PARSER = "text metric", "hf callback", "argument parser"
ROOTS = ("transformers", "trl", "peft", "datasets")


def kind_of(root: str, last: str) -> str | None:
    """What a class of such a library is, by package and name; None for nothing that rules ask for."""
    if root == "peft":
        return ADAPTER if last.endswith("Config") else None
    if root == "trl" and last.endswith("Config") and last not in _NO_ARGUMENTS:
        return ARGUMENTS
    if root == "datasets":
        return ROWS if last in ("Dataset", "DatasetDict", "IterableDataset") else None
    if root not in ("transformers", "trl"):
        return None
    if last.endswith("Trainer"):
        return TRAINER
    if last.endswith("TrainingArguments"):
        return ARGUMENTS
    if last.startswith("DataCollator"):
        return COLLATOR
    if last in ("BitsAndBytesConfig", "GPTQConfig", "AwqConfig", "QuantoConfig", "HqqConfig", "TorchAoConfig"):
        return QUANTIZATION
    if last.endswith("Callback"):
        return WATCHER
    return PARSER if last in ("HfArgumentParser", "TrlParser") else None


_NO_ARGUMENTS = ("ModelConfig", "ScriptConfig", "DatasetMixtureConfig")
