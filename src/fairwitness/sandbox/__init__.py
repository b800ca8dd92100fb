"""Run foreign commands in a sandbox: isolation, resource limits, captured output."""
