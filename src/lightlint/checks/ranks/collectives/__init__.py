"""Collectives and steps that ranks make together."""
