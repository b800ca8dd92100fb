"""The composition root: the only module that knows which backend and which runner is real."""
