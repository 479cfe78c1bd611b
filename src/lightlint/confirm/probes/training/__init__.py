"""Probes of what training does: gradients, losses, modes, schedules, updates."""
