"""Configurations and own scripts belong to the project that uses them.

What several projects use, or none, is of the default project, which everybody has read it in so
far. Configurations that are built in or published belong to none.
"""

import django.db.models.deletion
from django.db import migrations, models

from benchlab.gentle_migrations import InSteps

# %(uses)s has (key, project) of each use. What nobody has used yet is of its author's only project.
OWNED = """
WITH usual AS (SELECT id FROM runs_project WHERE slug = 'default'),
used AS (
    SELECT key, min(project) AS project, count(DISTINCT project) AS projects
    FROM ({uses}) AS uses (key, project) GROUP BY key
), joined AS (
    SELECT user_id, min(project_id) AS project, count(*) AS projects
    FROM runs_membership GROUP BY user_id
)
UPDATE {table} owned SET project_id = CASE
    WHEN used.projects = 1 THEN used.project
    WHEN used.projects IS NULL AND joined.projects = 1 THEN joined.project
    ELSE (SELECT id FROM usual) END
FROM {table} each
    LEFT JOIN used ON used.key = each.id LEFT JOIN joined ON joined.user_id = each.created_by_id
WHERE owned.id = each.id AND owned.project_id IS NULL{which}
"""
PROJECT = "coalesce(campaign.project_id, (SELECT id FROM usual))"
CONFIGURATIONS = OWNED.format(
    table="runs_configuration",
    uses=f"""
        SELECT configuration_id, {PROJECT} FROM runs_campaign campaign
        WHERE configuration_id IS NOT NULL
        UNION ALL SELECT varied.configuration_id, {PROJECT}
        FROM runs_campaignconfiguration varied JOIN runs_campaign campaign
            ON campaign.id = varied.campaign_id""",
    which=" AND owned.origin = 'own'",
)
WORKLOADS = OWNED.format(
    table="runs_workload",
    uses=f"""
        SELECT version.workload_id, {PROJECT}
        FROM runs_workloadversion version JOIN runs_cell cell ON cell.workload_version_id = version.id
            JOIN runs_campaign campaign ON campaign.id = cell.campaign_id""",
    which="",
)


def project(name):
    return models.ForeignKey(
        null=True,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=name,
        to="runs.project",
    )


class Migration(InSteps):
    dependencies = [("runs", "0057_marks")]

    operations = [
        migrations.AddField("configuration", "project", project("configurations")),
        migrations.AddField("workload", "project", project("workloads")),
        migrations.RunSQL(CONFIGURATIONS, migrations.RunSQL.noop),
        migrations.RunSQL(WORKLOADS, migrations.RunSQL.noop),
    ]
