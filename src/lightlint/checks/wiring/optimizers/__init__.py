"""What `configure_optimizers` returns."""
