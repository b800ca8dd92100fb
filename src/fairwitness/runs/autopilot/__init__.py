"""The steps of autopilot: what a phase and a run leave behind for people, and for the next run."""
