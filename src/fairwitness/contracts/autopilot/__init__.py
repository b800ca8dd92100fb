"""The files, returns and events of autopilot (seed 003)."""
