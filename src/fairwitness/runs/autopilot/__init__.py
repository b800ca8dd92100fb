"""The autopilot workflow: the steps of a phase, the decisions after it, and the files that a run writes."""
