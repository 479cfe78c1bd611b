"""Evaluation: metrics, and which checkpoint is the best."""
