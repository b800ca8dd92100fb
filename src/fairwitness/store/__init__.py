"""Artifacts on disk: atomic writes, the file layout of each workflow, append-only files."""
