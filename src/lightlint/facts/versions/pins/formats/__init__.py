"""The forms in which projects write what they install."""
