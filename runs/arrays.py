"""numpy, which whoever calculates first loads: 6 MB that no run and no supervision needs.

Not in `sys.modules` before: psycopg takes numpy that is there for numpy in use.
"""

from typing import TYPE_CHECKING

from runs.later import Later

if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")

__all__ = ["np"]
