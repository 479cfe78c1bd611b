"""LL6: Lightning wiring."""
