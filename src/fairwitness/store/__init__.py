"""Artifacts on disk: atomic writes, the layout of each workflow, files that only grow."""
