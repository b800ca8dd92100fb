"""What the till promises."""
