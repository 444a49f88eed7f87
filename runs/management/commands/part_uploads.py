"""Part uploads that an older BenchLab took for repeats though their workload differs."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.models import Campaign
from runs.models.campaigns import Origin
from runs.services.uploads import workload_split


class Command(BaseCommand):
    """Parts what was uploaded before workloads did."""

    help = "Parts uploaded runs by script, query mode, connection, rate and tries. Safe to repeat."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Go through all campaigns of uploads."""
        for campaign in Campaign.objects.filter(origin=Origin.UPLOADED).order_by("pk"):
            if moved := workload_split.part(campaign=campaign):
                self.stdout.write(f"{campaign.slug}: {moved} runs moved to cells of their own")
