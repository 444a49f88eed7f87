"""Metrics of uploads belong to the project that uses them.

Those of BenchLab's scenarios, tools and publications are shared, and so are those that several
projects use already: their figures stay together, and no project's history is parted.
"""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from benchlab.gentle_migrations import InSteps

USED = """
WITH usual AS (SELECT id FROM runs_project WHERE slug = 'default'),
summarised AS (
    SELECT DISTINCT metric_id, cell.campaign_id
    FROM runs_cellsummary summary JOIN runs_cell cell ON cell.id = summary.cell_id
),
-- Of what has no summary, as of runs that failed, the oldest and the newest figure.
other AS (
    SELECT metric.id AS metric_id, run.campaign_id FROM runs_metric metric CROSS JOIN LATERAL (
        (SELECT run_id FROM runs_measurement WHERE metric_id = metric.id ORDER BY run_id LIMIT 1)
        UNION ALL
        (SELECT run_id FROM runs_measurement WHERE metric_id = metric.id
         ORDER BY run_id DESC LIMIT 1)
    ) AS figure JOIN runs_run run ON run.id = figure.run_id
    WHERE NOT EXISTS (SELECT FROM summarised WHERE summarised.metric_id = metric.id)
), used AS (
    SELECT metric_id, min(coalesce(project_id, (SELECT id FROM usual))) AS project,
        count(DISTINCT coalesce(project_id, (SELECT id FROM usual))) AS projects,
        bool_or(origin = 'published') AS is_published
    FROM (SELECT * FROM summarised UNION ALL SELECT * FROM other) AS found
        JOIN runs_campaign campaign ON campaign.id = campaign_id
    GROUP BY metric_id
)
UPDATE runs_metric metric SET project_id = used.project FROM used
WHERE used.metric_id = metric.id AND projects = 1 AND NOT is_published
    AND metric.project_id IS NULL
    AND (name, unit, direction) NOT IN (
        SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])
    ) AND name <> ALL(%s)
"""


def own(apps, editor):
    """Give each metric to the only project that uses it, unless BenchLab itself names it."""
    from runs.scenarios import registry as scenarios
    from runs.tools import registry as tools

    shared = [(each.name, each.unit, each.direction) for each in tools.metrics().values()]
    with editor.connection.cursor() as cursor:
        columns = [list(each) for each in zip(*shared, strict=True)]
        cursor.execute(USED, [*columns, list(scenarios.metrics())])


class Migration(InSteps):
    dependencies = [("runs", "0060_hidden_settings")]

    operations = [
        migrations.AddField(
            "metric",
            "project",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="metrics",
                to="runs.project",
            ),
        ),
        migrations.AddConstraint(
            "metric",
            models.UniqueConstraint(fields=["name"], condition=Q(project=None), name="metric_once"),
        ),
        migrations.AddConstraint(
            "metric",
            models.UniqueConstraint(fields=["project", "name"], name="metric_once_in_project"),
        ),
        migrations.AlterField("metric", "name", models.SlugField(max_length=80)),
        migrations.RunPython(own, migrations.RunPython.noop),
    ]
