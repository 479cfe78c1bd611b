"""Rebuilds `src/lightlint/data/lightning-api.toml` from released wheels: see `generate`. Not part of the package."""
