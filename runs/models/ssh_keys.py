"""The keys with which BenchLab logs in to servers."""

from django.db import models


class SSHKey(models.Model):
    """A key pair; the private key is encrypted with a key that is not in the database."""

    name = models.CharField(max_length=100, unique=True)
    public_key = models.TextField()
    private_key_encrypted = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name
