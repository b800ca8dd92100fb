"""What the library promises."""
