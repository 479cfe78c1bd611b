"""Meters of what ranks and workers do: collectives, draws, files."""
