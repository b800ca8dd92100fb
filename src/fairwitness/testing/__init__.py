"""For authors of agent backends: the conformance kit, a scripted agent and a scripted model."""
