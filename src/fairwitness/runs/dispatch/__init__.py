"""Asking an agent: reserved before, compared and recorded after, adopted if it was done already."""

from fairwitness.runs.dispatch.dispatch import dispatch
from fairwitness.runs.dispatch.model import Context, DispatchDeps, Dispatched, DispatchPosition

__all__ = ["Context", "DispatchDeps", "DispatchPosition", "Dispatched", "dispatch"]
