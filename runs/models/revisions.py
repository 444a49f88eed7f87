"""Revisions of the software that was measured."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Revision(models.Model):
    """A commit, as the uploader names it. `parents` is a list of sha."""

    project = models.ForeignKey("Project", models.CASCADE, related_name="revisions")
    sha = models.CharField(max_length=64)
    ref = models.CharField(_("branch or tag"), max_length=200, blank=True)
    url = models.URLField(max_length=500, blank=True)
    committed_at = models.DateTimeField(_("committed"), null=True)
    parents = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["project", "-committed_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["project", "sha"], name="revision_once")]

    def __str__(self) -> str:
        return self.sha[:12]


class RevisionRef(models.Model):
    """A further branch or tag that a commit is on, besides the `ref` it was first uploaded with."""

    revision = models.ForeignKey("Revision", models.CASCADE, related_name="further_refs")
    ref = models.CharField(_("branch or tag"), max_length=200)

    class Meta:
        ordering = ["revision", "ref"]
        constraints = [models.UniqueConstraint(fields=["revision", "ref"], name="ref_once")]

    def __str__(self) -> str:
        return self.ref
