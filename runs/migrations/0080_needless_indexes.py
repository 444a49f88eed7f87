"""Indexes that no statement uses go, and one over a column that is mostly empty has what is there.

Lists and filters have others that begin alike.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations import RunSQL, SeparateDatabaseAndState

from benchlab.gentle_migrations import InSteps, in_steps


def without_index(model, name, field, *indexes):
    """The field as it is now; its indexes, by Django's names, go without a lock that others await."""
    gone = [RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {each}", RunSQL.noop) for each in indexes]
    return SeparateDatabaseAndState(gone, [migrations.AlterField(model, name, field)])


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
            RemoveIndexConcurrently("run", "run_by_campaign_queued"),
            without_index(
                "artifact",
                "sha256",
                models.CharField(max_length=64),
                "runs_artifact_sha256_c773c54d",
                "runs_artifact_sha256_c773c54d_like",
            ),
            migrations.AlterField(
                model_name="campaign",
                name="reproduces",
                field=models.SlugField(blank=True, db_index=False, max_length=120),
            ),
            without_index(
                "cell",
                "workload_version",
                models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="cells",
                    to="runs.workloadversion",
                ),
                "runs_cell_workload_version_id_cb1cb38f",
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
            without_index(
                "run",
                "cluster",
                models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    to="runs.preparedcluster",
                ),
                "runs_run_cluster_id_d2d52236",
            ),
            without_index(
                "run",
                "environment",
                models.ForeignKey(
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="runs.environment",
                ),
                "runs_run_environment_id_d21696ec",
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
