"""Trainers of transformers and TRL."""
