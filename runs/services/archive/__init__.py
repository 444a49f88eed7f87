"""The archive: what its data files say, kept in step with them."""

from runs.services.archive.loading import Loaded, load

__all__ = ["Loaded", "load"]
