"""Quantities and their units."""
