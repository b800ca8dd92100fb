"""The body of autopilot: a roadmap of phases."""
