"""LL1: steps, gradients, losses."""
