"""How findings are written down, a module a format: `render(findings, colour)` gives the whole text."""
