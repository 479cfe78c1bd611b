"""Loops written by hand, with Accelerate and PEFT."""
