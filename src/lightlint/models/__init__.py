"""What libraries do, as far as rules need it: tables for most names, functions for those that behave."""
