"""How a target is reached: connections, sessions, keys, and what its login shell executes."""
