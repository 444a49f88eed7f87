"""The number of runs of each campaign and state, and of each origin: stored, not counted.

Whatever stores, changes or removes runs fires the triggers. They only add rows, so no upload waits
for another; `runs.services.runs.counts` adds rows of the same campaign up.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

FUNCTIONS = """
CREATE FUNCTION runs_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
        SELECT coalesce(campaign_id, 0), coalesce(origin, ''), state, count(*), false FROM made
        GROUP BY GROUPING SETS ((campaign_id, state), (origin, state));
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
        SELECT coalesce(campaign_id, 0), coalesce(origin, ''), state, -count(*), false FROM gone
        GROUP BY GROUPING SETS ((campaign_id, state), (origin, state));
    ELSE
        INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
        SELECT coalesce(campaign_id, 0), coalesce(origin, ''), state, sum(number), false
        FROM (SELECT campaign_id, origin, state, 1 AS number FROM made
              UNION ALL SELECT campaign_id, origin, state, -1 FROM gone) AS changed
        GROUP BY GROUPING SETS ((campaign_id, state), (origin, state)) HAVING sum(number) <> 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER run_made_counts AFTER INSERT ON runs_run
    REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION runs_count();
CREATE TRIGGER run_changed_counts AFTER UPDATE ON runs_run
    REFERENCING OLD TABLE AS gone NEW TABLE AS made FOR EACH STATEMENT
    EXECUTE FUNCTION runs_count();
CREATE TRIGGER run_gone_counts AFTER DELETE ON runs_run
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION runs_count();
"""
# Without a lock: what the triggers have counted so far is taken off what one snapshot has.
BEGINNING = """
INSERT INTO runs_runcount (campaign, origin, state, number, is_sum)
SELECT campaign, origin, state, sum(number), true
FROM (SELECT coalesce(campaign_id, 0) AS campaign, coalesce(origin, '') AS origin, state,
             count(*) AS number FROM runs_run
      GROUP BY GROUPING SETS ((campaign_id, state), (origin, state))
      UNION ALL SELECT campaign, origin, state, -number FROM runs_runcount) AS found
GROUP BY campaign, origin, state HAVING sum(number) <> 0
"""
UNDONE = """
DROP TRIGGER run_gone_counts ON runs_run;
DROP TRIGGER run_changed_counts ON runs_run;
DROP TRIGGER run_made_counts ON runs_run;
DROP FUNCTION runs_count();
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0018_reads")]

    operations = [
        migrations.CreateModel(
            name="RunCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("campaign", models.BigIntegerField()),
                ("origin", models.CharField(blank=True, max_length=10)),
                ("state", models.CharField(max_length=12)),
                ("number", models.BigIntegerField()),
                ("is_sum", models.BooleanField()),
            ],
            options={
                "ordering": ["campaign", "origin", "state"],
                "indexes": [
                    models.Index(fields=["campaign", "origin"], name="run_count_by_campaign"),
                    models.Index(
                        fields=["campaign"],
                        condition=models.Q(is_sum=False),
                        name="run_count_to_add",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            state__in=[
                                "queued",
                                "claimed",
                                "preparing",
                                "measuring",
                                "collecting",
                                "finished",
                                "failed",
                                "errored",
                                "cancelled",
                                "lost",
                                "withdrawn",
                            ]
                        ),
                        name="run_count_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(origin__in=["executed", "published", "uploaded", ""]),
                        name="run_count_origin_is_known",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FUNCTIONS, UNDONE),
        migrations.RunSQL(BEGINNING, migrations.RunSQL.noop),
        AddIndexConcurrently(
            "cell", models.Index(fields=["campaign", "ordinal"], name="cell_by_ordinal")
        ),
    ]
