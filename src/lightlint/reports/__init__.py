"""How findings are shown: each module renders a list of findings."""
