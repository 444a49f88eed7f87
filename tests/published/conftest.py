"""The documents are no part of the repository: where they are absent, nothing is compared."""

from tests.published.checker import sources

collect_ignore = [] if sources() else ["test_documents.py"]
