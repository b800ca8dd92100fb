"""Fair Witness drives coding agents from a request to a commit: agents propose, evidence decides."""

__version__ = "0.1.0.dev0"
