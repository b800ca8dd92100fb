"""The repository map and its structural queries."""
