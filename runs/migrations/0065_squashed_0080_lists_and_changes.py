"""What lists begin with, what changes say, and what CI jobs were told.

- Campaigns, runs and changes say whether everybody may see them, private ones whose they are. With
  the condition on the project alone a list reads all rows of other private projects that are newer.
- Cells say when their commit was made, so that a history begins with its newest ones.
- Messages are text and values. A server at fault has what it must have before its runs go on.
- Changes of the machine, and when and why a change was refuted; of what was refuted before nothing
  is known, nor what CI jobs were told before.
- Observations with their editions, ablations, and what compiled an installation.
- Indexes that no statement uses go; columns that are mostly empty are indexed where they are not.
  Without statistics by processor PostgreSQL expects few machines that match, and looks at the runs
  of each.
"""

from django.conf import settings
from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations import (
    AddField,
    AddIndex,
    AlterField,
    CreateModel,
    RunSQL,
    SeparateDatabaseAndState,
)
from django.db.models import CASCADE, PROTECT, SET_NULL, ForeignKey, Index, Q
from django.db.models.functions import Upper

from benchlab.gentle_migrations import AddCheck, InSteps, in_steps

# Runs and changes have it from the project of their campaign; a campaign without one is public.
OF_CAMPAIGNS = """
CREATE FUNCTION runs_take_openness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.is_public := coalesce(
        (SELECT is_public FROM runs_project WHERE id = NEW.project_id), true);
    RETURN NEW;
END $$;
CREATE TRIGGER campaign_takes_openness BEFORE INSERT OR UPDATE OF project_id ON runs_campaign
    FOR EACH ROW EXECUTE FUNCTION runs_take_openness();
"""
OF_RUNS = """
CREATE OR REPLACE FUNCTION runs_take_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT cell.version, runs_major(cell.version), coalesce(project.is_public, true),
        CASE WHEN NOT project.is_public THEN project.id END
    INTO NEW.cell_version, NEW.cell_major, NEW.is_public, NEW.private_project
    FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
        LEFT JOIN runs_project project ON project.id = campaign.project_id
    WHERE cell.id = NEW.cell_id;
    NEW.is_public := coalesce(NEW.is_public, true);
    RETURN NEW;
END $$;
"""
OF_CHANGES = """
CREATE OR REPLACE FUNCTION runs_take_campaign() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT campaign.id, coalesce(project.is_public, true),
        CASE WHEN NOT project.is_public THEN project.id END
    INTO NEW.campaign_id, NEW.is_public, NEW.private_project
    FROM runs_cell cell JOIN runs_campaign campaign ON campaign.id = cell.campaign_id
        LEFT JOIN runs_project project ON project.id = campaign.project_id
    WHERE cell.id = NEW.cell_id;
    NEW.is_public := coalesce(NEW.is_public, true);
    RETURN NEW;
END $$;
"""

# A project that is opened or closed, and a campaign that is given to another, tell their rows.
_TELL = """
    UPDATE {table} row SET is_public = public,
        private_project = CASE WHEN NOT public THEN campaign.project_id END
    FROM runs_campaign campaign
    WHERE campaign.id = row.campaign_id
        AND (campaign.project_id = ANY(projects) OR campaign.id = ANY(campaigns))
        AND (row.is_public, row.private_project) IS DISTINCT FROM
            (public, CASE WHEN NOT public THEN campaign.project_id END);
"""
FOLLOW = f"""
CREATE FUNCTION runs_tell_openness(
    projects bigint[], campaigns bigint[], public boolean
) RETURNS void LANGUAGE sql AS $$
    UPDATE runs_campaign SET is_public = public
    WHERE is_public <> public AND project_id = ANY(projects);
    {_TELL.format(table="runs_run")}
    {_TELL.format(table="runs_change")}
$$;
CREATE FUNCTION runs_project_tells_openness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_tell_openness(ARRAY[NEW.id], ARRAY[]::bigint[], NEW.is_public);
    RETURN NULL;
END $$;
CREATE TRIGGER project_tells_openness AFTER UPDATE OF is_public ON runs_project
    FOR EACH ROW WHEN (OLD.is_public <> NEW.is_public)
    EXECUTE FUNCTION runs_project_tells_openness();
CREATE FUNCTION runs_campaign_tells_openness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_tell_openness(ARRAY[]::bigint[], ARRAY[NEW.id], coalesce(
        (SELECT is_public FROM runs_project WHERE id = NEW.project_id), true));
    RETURN NULL;
END $$;
CREATE TRIGGER campaign_tells_openness AFTER UPDATE OF project_id ON runs_campaign
    FOR EACH ROW WHEN (OLD.project_id IS DISTINCT FROM NEW.project_id)
    EXECUTE FUNCTION runs_campaign_tells_openness();
"""
FIRST_OPEN = """
SELECT runs_tell_openness(array(SELECT id FROM runs_project WHERE NOT is_public),
                          ARRAY[]::bigint[], false);
"""
# A commit without a date has the time when it was first named.
TAKE = """
CREATE FUNCTION runs_take_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.commit_at := (
        SELECT coalesce(committed_at, created_at) FROM runs_revision WHERE id = NEW.revision_id);
    RETURN NEW;
END $$;
CREATE TRIGGER cell_takes_commit BEFORE INSERT OR UPDATE OF revision_id ON runs_cell
    FOR EACH ROW EXECUTE FUNCTION runs_take_commit();
CREATE FUNCTION runs_tell_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs_cell SET commit_at = coalesce(NEW.committed_at, NEW.created_at)
    WHERE revision_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER revision_tells_commit AFTER UPDATE OF committed_at ON runs_revision
    FOR EACH ROW WHEN (OLD.committed_at IS DISTINCT FROM NEW.committed_at)
    EXECUTE FUNCTION runs_tell_commit();
"""
FIRST_COMMITS = """
UPDATE runs_cell cell SET commit_at = coalesce(committed_at, revision.created_at)
FROM runs_revision revision WHERE revision.id = revision_id AND commit_at IS NULL;
"""

COUNTED = (
    "CREATE STATISTICS runs_hardware_by_cpu ON (upper(cpu_model::text)) FROM runs_hardwareprofile"
)


PUBLIC, PRIVATE = Q(is_public=True), Q(private_project__isnull=False)
KINDS = [("step", "step"), ("machine", "machine"), ("alarm", "alarm")]
REASONS = [
    ("later_runs", "later runs no longer show it"),
    ("withdrawn", "its run was withdrawn"),
    ("left_behind", "its branch has left the commit behind"),
    ("newer_rules", "newer rules do not find it"),
]
DECISIONS = [(each, each) for each in ("open", "confirmed", "dismissed", "refuted")]
JUDGEMENTS = [(each, each) for each in ("valid", "doubtful", "invalid")]
# The filters of lists, and what most uploads do not have. Those that see all are partial now;
# beside each stands that of what everybody may see.
FILTERS = (
    ("cell_major", ~Q(cell_major=""), "major"),
    ("cell_version", ~Q(cell_version=""), "version"),
    ("origin", ~Q(origin="uploaded"), "origin"),
    ("server", Q(server__isnull=False), "server"),
    ("hardware", Q(hardware__isnull=False), "hardware"),
)
# What is indexed already, but for what everybody may see.
STATES = (("state", ~Q(state="finished")), ("validity", ~Q(validity="")))


def open_to_all():
    return models.BooleanField(default=True, db_default=True, editable=False)


def private():
    return models.BigIntegerField(null=True, editable=False)


def json(empty):
    return models.JSONField(
        default=type(empty), db_default=models.Value(empty, models.JSONField())
    )


def key():
    name = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
    return ("id", name)


def known(field, choices):
    """A column of changes that takes these alone."""
    condition = Q(**{f"{field}__in": choices})
    check = models.CheckConstraint(condition=condition, name=f"change_{field}_is_known")
    return AddCheck("change", check)


def index(model, name, *fields, condition=None):
    return AddIndex(model, Index(fields=fields, condition=condition, name=name))


def filters():
    for field, condition, name in FILTERS:
        if field != "origin":
            yield RemoveIndexConcurrently("run", f"run_by_{name}")
            yield index("run", f"run_by_{name}", field, "-id", condition=condition)
        yield index("run", f"run_public_by_{name}", field, "-id", condition=condition & PUBLIC)
    for field, condition in STATES:
        yield index("run", f"run_public_by_{field}", field, "-id", condition=condition & PUBLIC)


def without_index(model, name, field, *indexes):
    """The field as it is now; its indexes, by Django's names, go without a lock that others await."""
    gone = [RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {each}", RunSQL.noop) for each in indexes]
    return SeparateDatabaseAndState(gone, [AlterField(model, name, field)])


OBSERVATIONS = [
    CreateModel(
        name="Observation",
        fields=[
            key(),
            ("slug", models.SlugField(max_length=120, unique=True)),
            ("title", models.CharField("title", max_length=150)),
            ("designs", models.JSONField()),
            ("versions", models.JSONField(default=list)),
            ("anchor", models.CharField("anchor", max_length=10)),
            ("night_from", models.TimeField(null=True)),
            ("night_until", models.TimeField(null=True)),
            ("time_zone", models.CharField("time zone", default="UTC", max_length=60)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("configuration", ForeignKey("runs.configuration", SET_NULL, null=True)),
            ("created_by", ForeignKey(settings.AUTH_USER_MODEL, SET_NULL, null=True)),
            (
                "project",
                ForeignKey("runs.project", CASCADE, null=True, related_name="observations"),
            ),
            ("server", ForeignKey("runs.server", CASCADE, related_name="observations")),
            (
                "releases",
                models.CharField(
                    "releases", max_length=10, default="alike", db_default="newest"
                ),
            ),
        ],
        options={"ordering": ["-pk"]},
    ),
    CreateModel(
        name="Edition",
        fields=[
            key(),
            ("label", models.CharField("edition", max_length=40)),
            ("purpose", models.TextField("purpose", blank=True)),
            ("discussion", models.TextField("discussion", blank=True)),
            ("conclusion", models.TextField("conclusion", blank=True)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("campaigns", models.ManyToManyField("runs.campaign", related_name="editions")),
            ("observation", ForeignKey("runs.observation", CASCADE, related_name="editions")),
        ],
        options={
            "ordering": ["observation", "pk"],
            "constraints": [
                models.UniqueConstraint(fields=("observation", "label"), name="edition_once")
            ],
        },
    ),
    CreateModel(
        name="Ablation",
        fields=[
            key(),
            ("suspects", models.JSONField()),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("base", ForeignKey("runs.cell", CASCADE, db_index=False, related_name="+")),
            (
                "campaign",
                models.OneToOneField("runs.campaign", CASCADE, related_name="ablation"),
            ),
            ("head", ForeignKey("runs.cell", CASCADE, related_name="+")),
        ],
        options={
            "ordering": ["-pk"],
            "indexes": [Index(fields=["base", "head", "-id"], name="ablation_by_cells")],
        },
    ),
]
TOLD_TO_JOBS = [
    CreateModel(
        "GateAnswer",
        [
            key(),
            ("base", models.CharField(max_length=300)),
            ("asked", models.JSONField()),
            ("fingerprint", models.CharField(max_length=64)),
            ("overall", models.CharField(max_length=20)),
            ("table", models.JSONField()),
            ("runs", models.TextField()),
            ("rules", models.PositiveSmallIntegerField()),
            ("given_at", models.DateTimeField(auto_now_add=True)),
            ("base_revision", ForeignKey("runs.revision", SET_NULL, null=True, related_name="+")),
            ("campaign", ForeignKey("runs.campaign", CASCADE, related_name="gate_answers")),
            ("head", ForeignKey("runs.revision", CASCADE, db_index=False, related_name="+")),
        ],
        options={"ordering": ["-pk"]},
    ),
    index("gateanswer", "gate_answer_by_head", "head", "-id"),
    AddField("revisionref", "known_at", models.DateTimeField(auto_now_add=True, null=True)),
]
WHOSE = [
    AddField("campaign", "is_public", open_to_all()),
    AddField("run", "private_project", private()),
    AddField("change", "private_project", private()),
    *(RunSQL(each, RunSQL.noop) for each in (OF_CAMPAIGNS, OF_RUNS, OF_CHANGES, FOLLOW, FIRST_OPEN)),
    index("campaign", "campaign_public", "-id", condition=PUBLIC),
    index("campaign", "campaign_public_by_origin", "origin", "-id", condition=PUBLIC),
    index("campaign", "campaign_private", "project", "-id", condition=Q(is_public=False)),
    index("run", "run_public", "-id", condition=PUBLIC),
    index("run", "run_public_by_end", "-finished_at", "-id", condition=PUBLIC),
    index("run", "run_private", "private_project", "-id", condition=PRIVATE),
    index("run", "run_private_by_end", "private_project", "-finished_at", "-id", condition=PRIVATE),
    index("change", "change_public", "-id", condition=PUBLIC),
    index("change", "change_private", "private_project", "-id", condition=PRIVATE),
    *filters(),
]
COMMITS = [
    AddField("cell", "commit_at", models.DateTimeField(null=True, editable=False)),
    RunSQL(TAKE, RunSQL.noop),
    RunSQL(FIRST_COMMITS, RunSQL.noop),
    index(
        *("cell", "cell_by_commit", "campaign", "series_key", "-commit_at", "-id"),
        condition=Q(revision__isnull=False),
    ),
]
CHANGES = [
    AddField("change", "settled_at", models.DateTimeField(null=True)),
    AddField(
        "change",
        "reason",
        models.CharField(max_length=20, choices=REASONS, blank=True, default="", db_default=""),
    ),
    known("reason", [*(each for each, _text in REASONS), ""]),
    AddField("change", "facts", json([])),
    AlterField(
        "change", "decision", models.CharField(max_length=10, choices=DECISIONS, default="open")
    ),
    AlterField("change", "kind", models.CharField(max_length=10, choices=KINDS)),
    migrations.RemoveConstraint("change", "change_kind_is_known"),
    known("kind", [each for each, _text in KINDS]),
]
INDEXES = [
    AddIndex(
        "hardwareprofile",
        Index(Upper("virtualization"), "id", name="hardware_by_virtualization"),
    ),
    RunSQL(COUNTED, "DROP STATISTICS runs_hardware_by_cpu"),
    index("artifact", "artifact_by_content", "sha256"),
    index("run", "run_by_cluster", "cluster", condition=Q(cluster__isnull=False)),
    migrations.RemoveIndex("campaign", "campaign_by_scenario"),
    RemoveIndexConcurrently("run", "run_by_campaign_queued"),
    without_index(
        *("artifact", "sha256", models.CharField(max_length=64)),
        *("runs_artifact_sha256_c773c54d", "runs_artifact_sha256_c773c54d_like"),
    ),
    AlterField(
        "campaign", "reproduces", models.SlugField(blank=True, db_index=False, max_length=120)
    ),
    without_index(
        "cell",
        "workload_version",
        ForeignKey(
            "runs.workloadversion", PROTECT, db_index=False, null=True, related_name="cells"
        ),
        "runs_cell_workload_version_id_cb1cb38f",
    ),
    AlterField(
        "revision",
        "project",
        ForeignKey("runs.project", CASCADE, db_index=False, related_name="revisions"),
    ),
    without_index(
        "run",
        "cluster",
        ForeignKey("runs.preparedcluster", SET_NULL, db_index=False, null=True),
        "runs_run_cluster_id_d2d52236",
    ),
    without_index(
        "run",
        "environment",
        ForeignKey("runs.environment", PROTECT, db_index=False, null=True),
        "runs_run_environment_id_d21696ec",
    ),
    AlterField(
        "upload",
        "project",
        ForeignKey("runs.project", CASCADE, db_index=False, related_name="uploads"),
    ),
]


class Migration(InSteps):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("runs", "0059_cache_versions"),
    ]
    replaces = [
        ("runs", "0065_public_rows"),
        ("runs", "0066_alarm_words"),
        ("runs", "0067_words_of_validity"),
        ("runs", "0068_campaign_changes"),
        ("runs", "0069_refuted_changes"),
        ("runs", "0070_wordings"),
        ("runs", "0071_gate_answers"),
        ("runs", "0072_machine_changes"),
        ("runs", "0073_observations"),
        ("runs", "0074_ablations"),
        ("runs", "0075_private_projects"),
        ("runs", "0076_newest_commits"),
        ("runs", "0077_public_states"),
        ("runs", "0078_builds_alike"),
        ("runs", "0079_faster_hardware"),
        ("runs", "0080_needless_indexes"),
    ]

    operations = in_steps(
        [
            AddField("run", "is_public", open_to_all()),
            AddField("change", "is_public", open_to_all()),
            AlterField(
                "run",
                "validity",
                models.CharField(blank=True, choices=JUDGEMENTS, db_default="", max_length=10),
            ),
            AddField("campaign", "changes", models.JSONField(null=True)),
            AddField("run", "wording", json({})),
            AddField("runevent", "wording", json({})),
            AddField("server", "wording", json({})),
            AddField("server", "needs", json({})),
            *CHANGES,
            *TOLD_TO_JOBS,
            *OBSERVATIONS,
            *WHOSE,
            *COMMITS,
            AddField(
                "installation", "compiler", models.CharField(blank=True, db_default="", max_length=200)
            ),
            *INDEXES,
        ]
    )
