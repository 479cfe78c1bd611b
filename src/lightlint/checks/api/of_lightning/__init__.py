"""Lightning's API."""
