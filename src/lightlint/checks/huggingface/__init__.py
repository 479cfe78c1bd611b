"""LL9: Hugging Face: Trainer, Accelerate, TRL, PEFT, DeepSpeed."""
