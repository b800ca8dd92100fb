"""The command line: parse, call app, render."""
