"""Which programs of a file to rehearse, and along which paths."""
