"""What is trained and what trains it: modules, their passes, optimizers and schedules."""
