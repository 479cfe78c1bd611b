"""Settings: where they stand, what they say, and which rules and files they select."""
