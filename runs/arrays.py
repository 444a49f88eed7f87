"""numpy and scipy's special functions, which whoever calculates first loads.

numpy takes 6 MB that no run and no supervision needs. It is not in `sys.modules` before: psycopg
takes numpy that is there for numpy in use. `scipy.special` takes 28 MB, of which its compiled
functions are 7: they alone are loaded, until somebody asks for anything else of it.
"""

from typing import TYPE_CHECKING

from runs.later import Later, load_package_later

if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")

_COMPILED = "scipy.special._ufuncs"
load_package_later(
    "scipy.special",
    **dict.fromkeys(("betainc", "betaincinv", "chdtrc", "chdtri", "fdtrc", "gammainc"), _COMPILED),
    **dict.fromkeys(("nctdtr", "ndtr", "ndtri", "psi", "stdtr", "stdtrit"), _COMPILED),
    zeta=f"{_COMPILED}:_zeta",  # Hurwitz's: always with two arguments
)

__all__ = ["np"]
