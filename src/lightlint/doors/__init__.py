"""Thin doors into the pipeline for other tools."""
