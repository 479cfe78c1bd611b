"""Meters of a process: its memory, its time, its warnings."""
