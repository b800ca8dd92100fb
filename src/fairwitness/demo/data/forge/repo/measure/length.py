"""Lengths, in millimetres."""

LENGTH = {"mm": 1, "cm": 10, "m": 1_000, "km": 1_000_000}
