"""The wiring: puts sandboxes, agents, engine and runners together for one repository."""
