"""How findings are repaired: text edits, applied in rounds."""
