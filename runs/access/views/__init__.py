"""Access: who may do what, and the secrets behind it."""
