"""What the commands print: live screens, lines, columns and prompts."""
