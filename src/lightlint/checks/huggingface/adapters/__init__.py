"""Adapters: how they are made, loaded and merged."""
