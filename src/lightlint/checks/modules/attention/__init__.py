"""Attention: its masks, and over what its softmax goes."""
