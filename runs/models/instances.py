"""Which BenchLab this is."""

import uuid

from django.db import models


class Instance(models.Model):
    """The one row that names this results database, so that targets can distinguish BenchLabs."""

    name = models.UUIDField(default=uuid.uuid4, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # The rules by which all runs are certified; while older, some runs are judged again each time.
    judged_rules = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Since then services of a release without seals may have stored runs; None: no more.
    unsealed_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(name="one_instance", condition=models.Q(pk=1))]

    def __str__(self) -> str:
        return str(self.name)
