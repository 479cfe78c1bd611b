"""What is known of the numbers in tensors."""
