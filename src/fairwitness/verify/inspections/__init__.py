"""Static inspections of a change: pure functions over texts that run nothing and trust nothing they read."""
