"""`python -m benchlab.embedded`: a complete BenchLab in the foreground."""

import sys

from benchlab.embedded.instance import main

sys.exit(main())
