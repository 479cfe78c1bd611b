"""What the classes of the Hugging Face libraries are to training."""

from __future__ import annotations

TRAINER, ARGUMENTS, COLLATOR = "hf trainer", "training arguments", "collator"
TOKENIZER, ADAPTER, QUANTIZATION, ROWS = "tokenizer", "adapter config", "quantization", "rows"
TEXT_METRIC, WATCHER, PARSER = "text metric", "hf callback", "argument parser"
TRANSFORM = "#transform"
"""Under which name a table keeps what is done to its rows when they are read."""
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

FORWARD_KEYWORDS = {
    "attention_mask", "bbox", "cache_position", "cross_attn_head_mask", "decoder_attention_mask", "decoder_head_mask",
    "decoder_input_ids", "decoder_inputs_embeds", "decoder_position_ids", "encoder_attention_mask",
    "encoder_hidden_states", "encoder_outputs", "global_attention_mask", "head_mask", "input_features", "input_ids",
    "input_values", "inputs_embeds", "labels", "langs", "lm_labels", "logits_to_keep", "masked_lm_labels",
    "next_sentence_label", "num_items_in_batch", "num_logits_to_keep", "output_attentions", "output_hidden_states",
    "output_router_logits", "past_key_values", "pixel_values", "position_ids", "return_dict", "token_type_ids",
    "use_cache",
}  # fmt: skip
"""What models of transformers take besides labels: who takes something else is of another class, and what it does with the
labels is not known."""
