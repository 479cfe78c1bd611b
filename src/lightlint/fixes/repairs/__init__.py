"""Repairs that several rules offer."""
