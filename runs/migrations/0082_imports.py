"""Where imported runs come from; a run's cell is of the run's campaign; seals of judgements."""

from django.db import migrations, models
from django.db.models import Q

from benchlab.gentle_migrations import AddCheck, InSteps

ORIGINS = [
    ("executed", "executed"),
    ("published", "published"),
    ("uploaded", "uploaded"),
    ("imported", "imported"),
]
KINDS = [
    ("sealed", "sealed"),
    ("amended", "amended"),
    ("withdrawn", "withdrawn"),
    ("restored", "restored"),
    ("judged", "judged again"),
]
PAIR = """
ALTER TABLE runs_run ADD CONSTRAINT run_in_cell_of_campaign
    FOREIGN KEY (campaign_id, cell_id) REFERENCES runs_cell (campaign_id, id)
    DEFERRABLE INITIALLY DEFERRED NOT VALID
"""
# Where runs contradict it, it stays as it is for new ones, and `manage.py verify` names the old.
VALIDATE = """
DO $$ BEGIN
    IF NOT EXISTS (
        SELECT FROM runs_run run JOIN runs_cell cell ON cell.id = run.cell_id
         WHERE cell.campaign_id <> run.campaign_id
    ) THEN
        ALTER TABLE runs_run VALIDATE CONSTRAINT run_in_cell_of_campaign;
    END IF;
END $$
"""
# The constraint on the cell alone, which the pair includes.
DROP_SINGLE = """
DO $$ DECLARE single name; BEGIN
    SELECT conname INTO single FROM pg_constraint
     WHERE conrelid = 'runs_run'::regclass AND contype = 'f'
       AND conkey = ARRAY[(SELECT attnum FROM pg_attribute
                            WHERE attrelid = 'runs_run'::regclass AND attname = 'cell_id')];
    IF single IS NOT NULL THEN
        EXECUTE format('ALTER TABLE runs_run DROP CONSTRAINT %I', single);
    END IF;
END $$
"""


def known(model, field, name, choices, *more):
    values = [value for value, _label in choices]
    return [
        migrations.RemoveConstraint(model, name),
        AddCheck(
            model,
            models.CheckConstraint(condition=Q(**{f"{field}__in": [*values, *more]}), name=name),
        ),
    ]


class Migration(InSteps):
    dependencies = [("runs", "0081_unread_columns")]

    operations = [
        migrations.CreateModel(
            "Import",
            [
                ("id", models.BigAutoField(primary_key=True, serialize=False, auto_created=True, verbose_name="ID")),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("by", models.CharField(max_length=200, blank=True)),
                ("instance", models.CharField(max_length=40, blank=True)),
                ("key", models.CharField(max_length=64, blank=True)),
                ("is_verified", models.BooleanField(default=False)),
                ("fault", models.TextField(blank=True)),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.AddField(
            "run",
            "imported",
            models.ForeignKey(
                "runs.Import",
                models.PROTECT,
                null=True,
                related_name="runs",
                db_index=False,
                db_constraint=False,
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "campaign",
                    "origin",
                    models.CharField(max_length=10, choices=ORIGINS, default="executed"),
                ),
                migrations.AlterField(
                    "run",
                    "origin",
                    models.CharField(max_length=10, choices=ORIGINS, default="executed"),
                ),
                migrations.AlterField(
                    "seal", "kind", models.CharField(max_length=10, choices=KINDS)
                ),
                migrations.AlterField(
                    "sealrequest",
                    "kind",
                    models.CharField(max_length=10, choices=KINDS, default="sealed"),
                ),
            ]
        ),
        *known("campaign", "origin", "campaign_origin_is_known", ORIGINS),
        *known("run", "origin", "run_origin_is_known", ORIGINS),
        *known("runcount", "origin", "run_count_origin_is_known", ORIGINS, ""),
        *known("seal", "kind", "seal_kind_is_known", KINDS),
        *known("sealrequest", "kind", "seal_request_kind_is_known", KINDS),
        migrations.RunSQL(
            "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS cell_in_campaign ON runs_cell (campaign_id, id)",
            "DROP INDEX CONCURRENTLY IF EXISTS cell_in_campaign",
        ),
        migrations.RunSQL(
            PAIR, "ALTER TABLE runs_run DROP CONSTRAINT IF EXISTS run_in_cell_of_campaign"
        ),
        migrations.RunSQL(VALIDATE, migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(DROP_SINGLE, migrations.RunSQL.noop)],
            [
                migrations.AlterField(
                    "run",
                    "cell",
                    models.ForeignKey(
                        "runs.Cell",
                        models.CASCADE,
                        related_name="runs",
                        db_index=False,
                        db_constraint=False,
                    ),
                )
            ],
        ),
    ]
