"""What is learnt from which part of the data."""
