"""Four demos with recorded teams: a feature run, one on the light path, a forge run and an autopilot run.

`data/` holds everything that a demo consists of: the files of its repository, the recorded sessions of its agents, and
`team.toml`, which says which sessions are played in which order. Only the models are recorded: tools, sandbox, checks,
gates and commits are real. After an edit of the data, replace the digests in `tests/demo/test_data.py`.
"""
