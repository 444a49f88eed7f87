"""What annotations call numpy's arrays."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Truths = NDArray[np.bool_]
