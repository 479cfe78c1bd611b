"""The processes of one run, and what runs in which of them."""
