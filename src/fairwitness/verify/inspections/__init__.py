"""Static inspections of a change: pure functions over texts, which run nothing and believe nothing they read."""
