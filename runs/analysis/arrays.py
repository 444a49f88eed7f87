"""What annotations call numpy's arrays."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Places: TypeAlias = "NDArray[np.int64]"
Truths: TypeAlias = "NDArray[np.bool_]"
