"""Ablations: campaigns that put suspects back, one by one, to prove what made a difference."""

from django.db import models


class Ablation(models.Model):
    """A campaign whose cells are A, B, B again, B with each suspect put back, and with all.

    `base` and `head` are the cells A and B whose difference it explains. `suspects` are those that
    are tried, as they were when it was queued: `name`, `a`, `b`, and `put_back`, the settings. An
    arm is the cell with the level `arm`: its name as in `runs.analysis.why.proof`.
    """

    campaign = models.OneToOneField("Campaign", models.CASCADE, related_name="ablation")
    base = models.ForeignKey("Cell", models.CASCADE, related_name="+", db_index=False)
    head = models.ForeignKey("Cell", models.CASCADE, related_name="+")
    suspects = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["base", "head", "-id"], name="ablation_by_cells")]

    def __str__(self) -> str:
        return f"{self.base_id} … {self.head_id}"
