"""The project: settings, URLs, Celery and the embedded services."""

import os

# The matrices here are small: BLAS threads would wait actively for each other, which costs more
# than the work. Read when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
