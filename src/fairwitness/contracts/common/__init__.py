"""Shapes that all three workflows speak: scalars, ids, words, header, completion, approvals, events."""
