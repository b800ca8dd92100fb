"""Every decision, as pure functions and tables over contracts; no clock, no file, no SQL."""
