"""What an environment is: described from inside, and read back from whatever describes it."""
