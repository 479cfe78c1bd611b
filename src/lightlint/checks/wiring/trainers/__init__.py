"""Trainers and their callbacks."""
