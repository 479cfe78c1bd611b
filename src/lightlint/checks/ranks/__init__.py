"""LL4: ranks and collectives."""
