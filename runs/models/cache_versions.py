"""The versions of what kept answers are made of."""

from django.db import models


class CacheVersion(models.Model):
    """The version of a subject, which triggers raise in the transaction that changes its rows.

    Subjects are "campaign 12" (its cells, finished runs, figures and notes), "campaign 12 runs"
    (all of its runs), "machines" (how the runs of executed campaigns that have ended scatter) and
    "shared" (metrics, scenarios, servers' names: what any answer may show). Campaigns that are
    uploaded have none: they change all the time. A version is never used twice: the microseconds
    since 1970, or the one after the last.
    """

    subject = models.CharField(max_length=40, primary_key=True)
    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.subject}: {self.number}"
