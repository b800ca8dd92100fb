"""Benchmarks: ratios against a named baseline measured in the same run, never a timed test."""
