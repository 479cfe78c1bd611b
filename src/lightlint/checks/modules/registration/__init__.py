"""What a module registers, moves and trains."""
