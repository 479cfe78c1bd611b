"""LL3: data."""
