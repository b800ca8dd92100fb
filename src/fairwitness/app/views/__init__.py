"""Read models: runs, tasks, gates, events, evidence and questions as the commands show them."""
