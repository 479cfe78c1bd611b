"""Code, held against an environment."""
