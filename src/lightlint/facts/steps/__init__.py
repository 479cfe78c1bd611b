"""What one training step does, in which order, and what outlives it."""
