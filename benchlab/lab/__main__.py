"""`python -m benchlab.lab`, which script/lab runs."""

import sys

from benchlab.lab.command import main

sys.exit(main())
