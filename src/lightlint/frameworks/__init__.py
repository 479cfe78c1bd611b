"""Frameworks as drivers: small programs in the models' terms that call hooks in their order."""
