"""What can hold Python: files and notebooks, how they are found, read, suppressed and written back."""
