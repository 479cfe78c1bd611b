"""What rules ask of events again and again."""
