"""Probes of a process: its memory, its time, what it raises."""
