"""The forge workflow: its plan, its workers and refineries, and what may be added to a plan that is carried out."""
