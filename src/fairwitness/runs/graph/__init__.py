"""The world of a graph of tasks: its book of events, its worktrees and checks, its merges."""
