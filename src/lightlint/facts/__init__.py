"""What is known of a program without opinion: names, classes, hooks, flow, ranks, versions."""
