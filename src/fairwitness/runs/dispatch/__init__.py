"""Asking an agent: reserved before, compared and recorded after, adopted if it was done already."""

from fairwitness.runs.dispatch.dispatch import dispatch
from fairwitness.runs.dispatch.model import DispatchContext, DispatchDeps, Dispatched, DispatchPosition

__all__ = ["DispatchContext", "DispatchDeps", "DispatchPosition", "Dispatched", "dispatch"]
