"""Verify a change: run its checks before and after it, run the base's own tests against the new code, inspect the diff.

A library of its own: it knows the repository (`git`), the sandbox, the ledger and the rules, but no agent, no run and
no workflow. Begin with `subject`: `prove` verifies one subject (an attempt of a task, a merge, or the single change of
`fairwitness verify`) and returns whether the change holds and why not. Several subjects may be verified at the same
time in threads and processes.

| module | what it does |
|---|---|
| `subject` | Entry point: dependencies (`VerifyDeps`), `prove`, `verify_subject` |
| `verification` | The whole verification of one change, from two trees to the gate's answer |
| `cascade` | Runs every check before and after the change and compares the results item by item |
| `proofs` | Evidence about new tests: red without the change, mutants, canaries, uncovered lines |
| `diff`, `inspections` | What the change does to tests, configuration and files, read from the diff |
| `proofs_and_report` | Turns results into proofs, the question to the gate, and the lines of the report |
| `conclusion`, `gate_answer` | The first and last ledger record of a verification; the gate's answer from the ledger |
| `harness`, `check_cache`, `checkouts` | Run one check at one tree, or reuse its recorded result |
| `discovery` | Finds the checks of a repository from its files |
| `environment` | Prepares interpreters, dependencies and commands |
| `reports` | Reads the reports of test runners, linters and compilers |
| `folder_lock` | A folder that one process at a time uses |
"""
