"""Where autograd records, and which values carry a graph."""
