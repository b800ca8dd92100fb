"""The path of every artifact of each workflow; nothing is read or written, and every id is checked first."""
