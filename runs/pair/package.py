"""What a notebook imports: `from benchlab_pair import frame`. It is the installed package's own."""

from benchlab_pair.runs.pair.frame import frame
from benchlab_pair.runs.pair.reads import ReadError

__all__ = ["ReadError", "frame"]
