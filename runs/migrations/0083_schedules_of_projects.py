"""A schedule has its project in a column, and stores its design as every draft is stored.

Until now it named installations by their folders and configurations by their slugs. Schedules are
few, so that one transaction rewrites them all.
"""

import django.db.models.deletion
from django.db import migrations, models

from benchlab.gentle_migrations import InSteps

# The fields that earlier releases did not store, with what they meant.
DEFAULTS = {
    "remeasures": 1,
    "leaves_out_doubtful": False,
    "wanted_half_width": None,
    "most_attempts": None,
    "most_repeats": None,
    "is_a_a": False,
    "priority": 0,
    "settings": {},
    "generators": [],
    "cluster_servers": [],
}
COPIED = ("title", "scenario", "levels", "parameters", "repeats", *DEFAULTS)


def rewrite(apps, _editor):
    """Each schedule's project and design."""
    Project = apps.get_model("runs", "Project")
    projects = set(Project.objects.values_list("pk", flat=True))
    for schedule in apps.get_model("runs", "Schedule").objects.all():
        old = schedule.draft
        if "bindirs" not in old:
            continue  # in today's form
        project = old.get("project")
        schedule.project_id = project if project in projects else None
        schedule.draft = todays(apps, schedule, old)
        schedule.save(update_fields=["project", "draft"])


def todays(apps, schedule, old):
    """A draft that named folders and slugs, as `Draft.to_json` has it."""
    Installation = apps.get_model("runs", "Installation")
    more_servers = old.get("more_servers") or []
    bindirs_of = {schedule.server_id: old["bindirs"], **dict(more_servers)}
    key_of = {
        (installation.server_id, installation.bindir): installation.pk
        for installation in Installation.objects.filter(server__in=bindirs_of)
    }
    wanted = [(server, bindir) for server in bindirs_of for bindir in bindirs_of[server]]
    configuration, *more_configurations = configurations(apps, old)
    values = DEFAULTS | {name: old[name] for name in COPIED if name in old}
    return {
        **values,
        "seed": None,
        "reproduces": "",
        "treatment": old.get("treatment") or {},
        "server": schedule.server_id,
        "more_servers": [server for server, _bindirs in more_servers],
        "installations": [key_of[place] for place in wanted if place in key_of],
        "client": key_of.get((schedule.server_id, old.get("client"))),
        "configuration": configuration,
        "more_configurations": more_configurations,
    }


def configurations(apps, old):
    """The keys of configurations; one that was removed among several has a key of none, 0."""
    slugs = old.get("configurations") or [old.get("configuration")]
    Configuration = apps.get_model("runs", "Configuration")
    key_of = dict(Configuration.objects.filter(slug__in=slugs).values_list("slug", "pk"))
    if len(slugs) == 1:
        return [key_of.get(slugs[0])]
    return [key_of.get(slug, 0) if slug else None for slug in slugs]


class Migration(InSteps):
    dependencies = [("runs", "0082_imports")]

    operations = [
        migrations.AddField(
            "schedule",
            "project",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="schedules",
                to="runs.project",
            ),
        ),
        migrations.RunPython(rewrite, migrations.RunPython.noop),
    ]
