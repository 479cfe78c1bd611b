"""Models that are wrapped for many ranks."""
