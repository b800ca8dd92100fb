"""Every shape that crosses a room or a disk."""
