"""Optimizers and the parameters they hold."""
