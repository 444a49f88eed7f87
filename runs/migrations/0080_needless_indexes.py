"""Indexes that no statement uses go, and one over a column that is mostly empty has what is there.

Lists and filters have others that begin alike.
"""

import django.db.models.deletion
from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [("runs", "0079_faster_hardware")]

    operations = in_steps(
        [
            migrations.AddIndex(
                model_name="artifact",
                index=models.Index(fields=["sha256"], name="artifact_by_content"),
            ),
            migrations.AddIndex(
                model_name="run",
                index=models.Index(
                    condition=models.Q(("cluster__isnull", False)),
                    fields=["cluster"],
                    name="run_by_cluster",
                ),
            ),
            migrations.RemoveIndex(
                model_name="campaign",
                name="campaign_by_scenario",
            ),
            migrations.RemoveIndex(
                model_name="run",
                name="run_by_campaign_queued",
            ),
            migrations.AlterField(
                model_name="artifact",
                name="sha256",
                field=models.CharField(max_length=64),
            ),
            migrations.AlterField(
                model_name="campaign",
                name="reproduces",
                field=models.SlugField(blank=True, db_index=False, max_length=120),
            ),
            migrations.AlterField(
                model_name="cell",
                name="workload_version",
                field=models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="cells",
                    to="runs.workloadversion",
                ),
            ),
            migrations.AlterField(
                model_name="revision",
                name="project",
                field=models.ForeignKey(
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="revisions",
                    to="runs.project",
                ),
            ),
            migrations.AlterField(
                model_name="run",
                name="cluster",
                field=models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    to="runs.preparedcluster",
                ),
            ),
            migrations.AlterField(
                model_name="run",
                name="environment",
                field=models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="runs.environment",
                ),
            ),
            migrations.AlterField(
                model_name="upload",
                name="project",
                field=models.ForeignKey(
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="uploads",
                    to="runs.project",
                ),
            ),
        ]
    )
