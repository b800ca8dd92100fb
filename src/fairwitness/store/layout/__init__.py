"""Where every artifact of each workflow lies: pure spelling, each id checked before it becomes part of a path."""
