"""The contract of durable engines as test cases, and a second engine in plain asyncio and SQLite."""
