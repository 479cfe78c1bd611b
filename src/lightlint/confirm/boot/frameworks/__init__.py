"""What is put into the frameworks that a program trains with: limits, ranks, a callback, a logger, a seed."""
