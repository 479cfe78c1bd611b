"""What a name alone says."""
