"""SSH keys and the servers that use them."""

from django.db.models import QuerySet

from runs.models import SSHKey


def listed() -> QuerySet[SSHKey]:
    """All keys by name, with their servers; without the private keys. Two queries."""
    return (
        SSHKey.objects.defer("private_key_encrypted").prefetch_related("servers").order_by("name")
    )
