"""Seals of runs: a hash chain per project, signed outside the database, and its queue."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from runs.models.constraints import is_one_of


class SealKind(models.TextChoices):
    """The kind of an entry about a run; see `Seal.Kind`."""

    SEALED = "sealed", _("sealed")
    AMENDED = "amended", _("amended")
    WITHDRAWN = "withdrawn", _("withdrawn")
    RESTORED = "restored", _("restored")
    # By newer rules its certificate says something else.
    JUDGED = "judged", _("judged again")


class Seal(models.Model):
    """An entry of a project's chain. Only added; `docs/seals.md` describes its form.

    `run` is a key without a foreign key: a deleted run leaves its seal behind. `content` is JSON as
    it was signed, empty if the entry has no content. `hash` covers the previous entry as well.
    """

    Kind = SealKind

    project = models.ForeignKey(
        "Project", models.PROTECT, related_name="+", db_index=False
    )
    number = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=10, choices=SealKind)
    run = models.BigIntegerField(db_index=True)
    at = models.DateTimeField()
    reason = models.TextField(blank=True)
    content = models.TextField(blank=True)
    hash = models.BinaryField(max_length=32)
    key = models.BinaryField(max_length=32)
    signature = models.BinaryField(max_length=64)

    class Meta:
        ordering = ["project", "number"]
        constraints = [
            is_one_of("kind", SealKind, name="seal_kind_is_known"),
            models.UniqueConstraint(
                fields=["project", "number"], name="seal_once_a_number"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.kind} {self.run}"

    @property
    def digest(self) -> str:
        """The hash in hexadecimal digits."""
        return bytes(self.hash).hex()

    @property
    def public_key(self) -> str:
        """The key in hexadecimal digits."""
        return bytes(self.key).hex()

    @property
    def signed(self) -> str:
        """The signature in hexadecimal digits."""
        return bytes(self.signature).hex()


class SealRequest(models.Model):
    """A request to seal. A queue, only added to: the sealing worker removes rows.

    `mark` authenticates it (`runs.access.selectors.macs`): kind, run, reason, `figures` (a digest
    of those that the run had, empty for whatever it has when it is sealed) and `place` (how many
    entries about the run came before). What is not authentic stays, with the code in `refused`.
    """

    kind = models.CharField(max_length=10, choices=SealKind, default=SealKind.SEALED)
    run = models.BigIntegerField()
    reason = models.TextField(blank=True, db_default="")
    at = models.DateTimeField(db_default=Now())
    figures = models.CharField(max_length=64, blank=True, db_default="")
    place = models.PositiveBigIntegerField(db_default=0)
    mark = models.CharField(max_length=64, blank=True, db_default="")
    refused = models.CharField(max_length=40, blank=True, db_default="")

    class Meta:
        ordering = ["pk"]
        constraints = [is_one_of("kind", SealKind, name="seal_request_kind_is_known")]

    def __str__(self) -> str:
        return f"{self.kind} {self.run}"

    @property
    def marked(self) -> tuple[object, ...]:
        """What the mark is over."""
        return (self.kind, self.run, self.reason, self.figures, self.place)


class AuditLink(models.Model):
    """An entry of the audit trail in its chain. Only added, by the sealing worker.

    `hash` covers the entry and the link before; `entry` is a key without a foreign key: a deleted
    entry leaves its link behind.
    """

    number = models.PositiveBigIntegerField(primary_key=True)
    entry = models.BigIntegerField(unique=True)
    hash = models.BinaryField(max_length=32)
    key = models.BinaryField(max_length=32)
    signature = models.BinaryField(max_length=64)

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return f"{self.number}: {self.entry}"
