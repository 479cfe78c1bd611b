"""Probes of what ranks and workers do."""
