"""Read the reports of tools item by item; a report counts only if it agrees with itself and with the exit code.

One module per family of reports turns a text into `ParsedItem`s (`model`), `exits` knows the meaning of each tool's
exit codes, and `reader` combines them and assigns final ids. Reports come from foreign code: a reader never raises, and
what it cannot read becomes a problem, never a pass.
"""

from fairwitness.verify.reports.reader import read_report

__all__ = ["read_report"]
