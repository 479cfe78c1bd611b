"""DataLoaders."""
