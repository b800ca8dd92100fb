"""The documents of the feature pipeline (seed 000) and its events."""
