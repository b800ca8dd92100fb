"""Orders and results that the executor of a task graph, its attempts and its merges exchange."""
