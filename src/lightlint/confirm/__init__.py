"""The runtime companion: runs the user's own command for a few steps and says with measurements whether findings are real."""
