"""The part that runs inside the user's process: fake tensors, and what they come to."""
