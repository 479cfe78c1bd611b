"""What a file says: its tree and places, scopes and names, and which of its statements run after which."""
