"""The files, agent returns and events of autopilot."""
