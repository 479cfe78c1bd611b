"""Classes and the objects made of them."""
