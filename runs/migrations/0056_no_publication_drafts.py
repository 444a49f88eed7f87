"""Publications come from reviewed files only: drafts of the browser become files, their table goes."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import migrations

from benchlab.gentle_migrations import InSteps, in_steps

FOLDER = "publication-drafts"


def export(apps: Any, _editor: Any) -> None:
    """Write each draft below the instance's folder, and the text that the archive had of it.

    A file that cannot be written ends the migration before anything is dropped.
    """
    folder = Path(settings.VAR_DIR, FOLDER)
    for draft in apps.get_model("runs", "PublicationDraft").objects.iterator():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The form took plain slugs only, but the table takes anything.
        name = draft.slug.replace("/", "-")
        texts = {f"{name}.yaml": draft.text}
        if draft.accepted not in ("", draft.text):
            texts[f"{name}.accepted.yaml"] = draft.accepted
        for file, text in texts.items():
            Path(folder, file).write_bytes(text.encode())


class Migration(InSteps):
    """Files first, then the table."""

    dependencies = [("runs", "0055_partitions")]

    operations = in_steps(
        [
            migrations.RunPython(export, migrations.RunPython.noop, atomic=False),
            migrations.DeleteModel("PublicationDraft"),
        ]
    )
