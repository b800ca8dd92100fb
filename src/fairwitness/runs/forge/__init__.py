"""The forge workflow: its plan, its workers and refineries, and change requests to a running plan."""
