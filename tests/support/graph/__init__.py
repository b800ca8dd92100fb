"""A simulated world in which the real graph executor works, and a small recorded team for real graphs."""
