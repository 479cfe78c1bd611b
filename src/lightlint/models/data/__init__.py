"""Data: where samples come from and how they are gone over."""
