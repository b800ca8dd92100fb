"""Git through its command line, with a safe configuration: worktrees, baseline refs, merges, quarantine."""
