"""`fairwitness verify`: the verification of a change and its machine-readable formats."""
