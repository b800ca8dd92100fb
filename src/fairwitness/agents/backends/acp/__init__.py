"""External agents over the Agent Client Protocol: one client, agents as data, the agent itself inside the sandbox."""
