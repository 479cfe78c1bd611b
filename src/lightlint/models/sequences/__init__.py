"""Sequences: the states of recurrent layers, attention, and its masks."""
