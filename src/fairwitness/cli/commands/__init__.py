"""The commands, one module each; every module defines `command`."""
