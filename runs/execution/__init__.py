"""The engine: SSH, durable steps, PostgreSQL clusters, host facts. No Django."""
