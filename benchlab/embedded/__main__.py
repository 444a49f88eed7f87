"""`python -m benchlab.embedded`: one whole BenchLab in the foreground."""

import sys

from benchlab.embedded.instance import main

sys.exit(main())
