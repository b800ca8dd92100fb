"""Proving a change: the same checks before and after, the base's own tests against the new code, and the diff itself.

The shape: `harness` runs one check at one tree and writes what came of it; `trees` puts together the trees that are
asked about; `cascade` runs every check before and after and compares them thing by thing; `proofs` asks what only new
tests can answer (are they red without the change, do they notice a wrong one, can they fail at all); `diff` looks at
what the change does to tests, configuration and files. The gate's answer is a rule over the rows that these write.

What is proven is the one change of `fairwitness verify`, or a *subject* of a larger run (an attempt of a task, a merge), of
which many stand side by side in one ledger: `subject` is the way in, `turns` keeps their folders apart, `memory` their
answers, and `concluding` frames each with its first and its last record.
"""
