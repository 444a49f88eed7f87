"""Its part of the REST API."""
