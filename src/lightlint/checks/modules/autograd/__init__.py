"""What autograd records."""
