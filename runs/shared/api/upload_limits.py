"""The most of everything that an upload, or the body of any other request, may have."""

from datetime import timedelta

# Of the body of every request.
MOST_BYTES = 10 * 2**20
MOST_RUNS = 1000
MOST_MEASUREMENTS = 1000
MOST_SAMPLES = 10_000
MOST_SERIES = 100
MOST_POINTS = 200_000
MOST_FILES = 200
MOST_PARENTS = 100
LONGEST_SUBJECT = 200
LONGEST_AUTHOR = 100
# As far as the database counts; a job may use the time in seconds.
MOST_ROUND = 2**31 - 1
MOST_FAULTS = 1000
# Nobody measures that much in any unit; squares of it can still be summed up.
LARGEST = 1e24
LARGEST_REAL = 3.4e38  # of four bytes, in which series are stored
SHORTEST_INTERVAL, LONGEST_INTERVAL = 1e-6, 366 * 86400  # seconds
MOST_AHEAD = timedelta(days=1)
OLDEST = 1995  # the year of Postgres95
LONGEST_IDEMPOTENCY_KEY = 200
LONGEST_LEVELS = 300
HARDWARE_TEXTS = {"name": 200, "cpu_model": 200, "virtualization": 60}
# The least and the most of each that a machine could have.
HARDWARE_NUMBERS = {
    "sockets": (1, 1024),
    "cores": (1, 65_536),
    "threads": (1, 262_144),
    "memory_bytes": (2**20, 2**50),
}
ENVIRONMENT_TEXTS = {"os_name": 200, "kernel": 200, "architecture": 40}
DEEPEST_FACTS = 16
