"""DataLoaders: what they draw, with which workers, and which loops go over them."""
