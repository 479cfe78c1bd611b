"""LL8: reproducibility, environment, notebooks."""
