"""Why code runs in one environment and not in another: snapshots of environments, and what differs between two."""
