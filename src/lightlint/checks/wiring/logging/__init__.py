"""What is logged, and metrics."""
