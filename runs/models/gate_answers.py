"""Answers that CI jobs were given, kept as they were."""

from django.db import models


class GateAnswer(models.Model):
    """What a CI job was told about a commit, and what that rested on.

    `base` is the base as it was named, `base_revision` its commit where it is one. `asked` has
    metrics, levels, effect and ignored conditions, and `fingerprint` is the question's, its base
    among it. `table` is that of `runs.selectors.compare.verdicts.as_json`; `runs` are the keys of
    the finished runs of both sides ("811-813,820"), and `rules` is the version of the rules.
    """

    campaign = models.ForeignKey("Campaign", models.CASCADE, related_name="gate_answers")
    head = models.ForeignKey("Revision", models.CASCADE, related_name="+", db_index=False)
    base = models.CharField(max_length=300)
    base_revision = models.ForeignKey("Revision", models.SET_NULL, null=True, related_name="+")
    asked = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    overall = models.CharField(max_length=20)
    table = models.JSONField()
    runs = models.TextField()
    rules = models.PositiveSmallIntegerField()
    given_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["head", "-id"], name="gate_answer_by_head")]

    def __str__(self) -> str:
        return f"{self.overall}: {self.base}"
