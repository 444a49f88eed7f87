"""The archive: what its data files say, kept in step with them."""

from runs.services.published.loading import Loaded, load

__all__ = ["Loaded", "load"]
