"""What Lightning calls, takes and watches: hooks, Trainers, logs, what `configure_optimizers` returns."""
