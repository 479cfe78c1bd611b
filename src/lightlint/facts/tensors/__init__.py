"""Which values are tensors, numbers or losses, of which type and where."""
