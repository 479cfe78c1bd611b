"""The machine that rehearses a program: it runs one path through it on abstract values and writes down events."""
