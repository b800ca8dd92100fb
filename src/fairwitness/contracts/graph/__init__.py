"""What passes between the executor of a task graph, its attempts and its merges."""
