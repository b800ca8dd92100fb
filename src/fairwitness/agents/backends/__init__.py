"""The agents that can be driven: model APIs, Agent Client Protocol agents, recorded teams."""
