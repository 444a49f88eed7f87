"""Why two cells differ: what their runs recorded, explained, and campaigns that prove it."""
