"""The audit trail: who did what, with the values before and after. Entries are only added."""

from django.db import models


class AuditEntry(models.Model):
    """One action of a person, a token or a command. The database refuses to change or delete one.

    `actor` is the name at that moment, `by_way_of` the door (page, api, command) with the token's
    name; both are empty for automatic actions of BenchLab. `project` is null if there is none.
    `subject` names the object: `server db1`, `run 12`. It never contains a secret.
    """

    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=150, blank=True)
    by_way_of = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=300)
    # Without a constraint: an entry outlives its subject.
    project = models.ForeignKey(
        "Project", models.DO_NOTHING, null=True, db_constraint=False, db_index=False
    )
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["project", "-id"], name="audit_by_project"),
            models.Index(fields=["actor", "-id"], name="audit_by_actor"),
            models.Index(fields=["action", "-id"], name="audit_by_action"),
            models.Index(fields=["subject", "-id"], name="audit_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.subject}"
