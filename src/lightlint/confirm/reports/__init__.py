"""How a judged run is shown: text, JSON, HTML."""
