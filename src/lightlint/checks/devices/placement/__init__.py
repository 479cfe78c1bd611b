"""Where tensors lie, and what makes the GPU wait."""
