"""What is not worked out twice, in one process or in the next."""
