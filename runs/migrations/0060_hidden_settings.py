"""Settings that were stored before commands and unknown settings were hidden lose their values.

A hidden value counts as equal: settings that differed in secrets only are one row from now on. Runs
that were sealed with such settings are amended, which their chains say.
"""

import functools
import hashlib
import json

from django.db import migrations, transaction
from django.db.models import Count

from benchlab.gentle_migrations import InSteps
from runs.postgresql_settings import secrets
from runs.access.selectors import macs

BATCH = 500
REASON = "an update hid values of its settings that may be secrets"
KIND = "amended"


def hide(apps, schema_editor):
    """Snapshots, a batch in a transaction with what it amends; then the few configurations."""
    masked = functools.lru_cache(100_000)(secrets.masked)
    Snapshot = apps.get_model("runs", "SettingsSnapshot")
    last = 0
    while batch := list(Snapshot.objects.filter(pk__gt=last).order_by("pk")[:BATCH]):
        last = batch[-1].pk
        with transaction.atomic():
            _hide_batch(apps, batch, masked)
    for name in ("Configuration", "ConfigurationRevision"):
        for row in apps.get_model("runs", name).objects.order_by("pk").iterator():
            kept = {key: masked(key, str(value)) for key, value in row.settings.items()}
            if kept != {key: str(value) for key, value in row.settings.items()}:
                told = [kept, list(row.initdb_options), *filter(None, [row.written_for])]
                row.settings, row.content_hash = kept, _hash(told)
                row.save(update_fields=["settings", "content_hash"])


def _hide_batch(apps, batch, masked):
    Snapshot, Run = apps.get_model("runs", "SettingsSnapshot"), apps.get_model("runs", "Run")
    changed = {}
    for row in batch:
        kept = {name: _shown(name, told, masked) for name, told in row.settings.items()}
        if kept != row.settings:
            changed[row.pk] = kept
    if not changed:
        return
    _amend(apps, list(Run.objects.filter(settings__in=changed).values_list("pk", flat=True)))
    for key, kept in changed.items():
        content_hash = _hash(kept)
        same = Snapshot.objects.filter(content_hash=content_hash).exclude(pk=key).first()
        if same is None:
            Snapshot.objects.filter(pk=key).update(settings=kept, content_hash=content_hash)
        else:
            Run.objects.filter(settings=key).update(settings=same)
            Snapshot.objects.filter(pk=key).delete()


def _shown(name, told, masked):
    value = told.get("setting")
    return {**told, "setting": masked(name, str(value))} if value else told


def _hash(content):
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _amend(apps, runs):
    """Requests to seal what is there now, of runs that are sealed, with the marks of 0057."""
    Seal, Request = apps.get_model("runs", "Seal"), apps.get_model("runs", "SealRequest")
    for start in range(0, len(runs), 5_000):
        some = runs[start : start + 5_000]
        entries = dict(_counted(Seal, some))
        waiting = dict(_counted(Request.objects.filter(refused=""), some))
        made = []
        for run in entries:
            place = entries[run] + waiting.get(run, 0)
            mark = macs.mark(macs.REQUEST, KIND, run, REASON, "", place)
            fields = {"kind": KIND, "run": run, "reason": REASON, "place": place, "mark": mark}
            made.append(Request(**fields, figures="", refused=""))
        Request.objects.bulk_create(made, batch_size=5_000)


def _counted(rows, runs):
    rows = getattr(rows, "objects", rows).filter(run__in=runs).order_by()
    return rows.values_list("run").annotate(Count("pk"))


class Migration(InSteps):
    dependencies = [("runs", "0059_cache_versions")]

    operations = [
        migrations.RunPython(hide, migrations.RunPython.noop, atomic=False, elidable=True),
    ]
