"""How much GPU memory a training step takes, said without a GPU."""
