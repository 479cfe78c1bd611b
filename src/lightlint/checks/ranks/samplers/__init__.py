"""Which rank draws which samples."""
