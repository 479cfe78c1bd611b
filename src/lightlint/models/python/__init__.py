"""Python itself and its standard library."""
