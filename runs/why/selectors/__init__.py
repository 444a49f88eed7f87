"""Why two cells differ: the ablations that tried suspects, and what they prove."""
