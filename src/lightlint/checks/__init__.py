"""One module a rule, named as its page."""
