"""What a tool reported, read thing by thing and believed only if it agrees with itself and with the exit code.

One module per family of reports turns a text into `Found` things; `settle` gives them their final ids, `exits` knows
what each tool means by its exit code, `reader` puts the three together. Every report comes from code that is not ours:
a reader never raises, and whatever it cannot make sense of becomes a problem, never a pass.
"""

from fairwitness.verify.reports.reader import read_report

__all__ = ["read_report"]
