"""The most of everything that a campaign may have, and what it gets where nobody says it."""

# How often each cell is measured: if nobody says it, and at most.
REPEATS, MOST_REPEATS = 3, 100
# Of adaptive repeats, as a share of the median.
NARROWEST, WIDEST = 0.001, 0.5
MOST_REMEASURES = 10
MOST_ATTEMPTS = 20
HIGHEST_PRIORITY = 100
MOST_RUNS = 10_000
MOST_CELLS = 10_000
# Configurations times settings; each one is fitted to each installation.
MOST_VARIANTS = 200
MOST_SETTINGS = 20
# Of a value of a setting, which is part of the cells' keys.
MOST_CHARACTERS = 60
MOST_LEVELS = 100
MOST_SERVERS = 50
MOST_GENERATORS = 16
# For further clusters.
MOST_MACHINES = 16
# Of a run in slices; a slice; and how many clusters take turns.
LEAST_SLICES, MOST_SLICES = 4, 1_000
LONGEST_SLICE_SECONDS = 10
MOST_IN_TURN = 16
# Of load in a round, of all clusters together: they are up all that time.
MOST_SECONDS_IN_TURN = 3_000
