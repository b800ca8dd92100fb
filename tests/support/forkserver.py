"""The server that forks the processes of concurrency tests. A test process has threads and must not be forked itself.

There is one such server in a test process, and the last list of modules to preload wins. So the list is kept here: were
it set by each test module, the order of their imports would decide which processes start at once and which of them
first import everything.
"""

import multiprocessing

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["db.ledger_jobs", "db.migrator", "db.openers", "fairwitness.db.postgres", "fairwitness.store.artifacts"]
)
