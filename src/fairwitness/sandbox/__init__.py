"""Runs commands that are not ours: isolation, limits, capture."""
