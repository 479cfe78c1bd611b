"""Training steps of Lightning."""
