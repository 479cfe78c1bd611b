"""Adversarial training and learning from rewards."""
