"""The artifacts and events of forge (seed 004)."""
