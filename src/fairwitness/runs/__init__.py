"""The only place where a decision meets the world; every step is idempotent and adopts what is already there."""
