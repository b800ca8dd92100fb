"""Dispatches: one call of an agent, with its budget, audit, records and adoption after a crash."""

from fairwitness.runs.dispatch.dispatch import dispatch
from fairwitness.runs.dispatch.model import DispatchContext, DispatchDeps, Dispatched, DispatchPosition

__all__ = ["DispatchContext", "DispatchDeps", "DispatchPosition", "Dispatched", "dispatch"]
