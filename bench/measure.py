"""Interleaved timing: every round runs every candidate once, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping


def medians(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median wall seconds of each candidate, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, run in candidates.items():
            began = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}


def report(title: str, measured: Mapping[str, float], baseline: str, goals: Mapping[str, float]) -> bool:
    """Prints each candidate as a ratio to the baseline; answers whether every goal was met."""
    print(f"\n{title}  (baseline: {baseline}, {measured[baseline] * 1000:.3f} ms)")
    met = True
    for name, seconds in measured.items():
        if name == baseline:
            continue
        ratio = seconds / measured[baseline]
        goal = goals.get(name)
        verdict = ""
        if goal is not None:
            met = met and ratio <= goal
            verdict = f"goal <= {goal:.2f}: {'met' if ratio <= goal else 'MISSED'}"
        print(f"  {ratio:6.2f}x  {name:<44} {verdict}")
    return met
