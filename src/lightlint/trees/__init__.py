"""Trees of a text: parsed ones, and sketches of them."""
