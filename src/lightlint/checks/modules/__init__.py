"""LL2: modules, modes, state, checkpoints."""
