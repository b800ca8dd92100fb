"""The task executor that all three workflows use: a loop that runs inside one repeatable step."""
