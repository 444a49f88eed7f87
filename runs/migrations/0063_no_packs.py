"""Each file of a run is a file again: what 0.2 put into packs is taken out of them."""

import io
import logging
import zipfile

from django.db import migrations

from benchlab import bucket
from benchlab.gentle_migrations import InSteps, in_steps

logger = logging.getLogger(__name__)


def take_out(apps, _editor):
    """Store the members of each pack by themselves, then remove it; a pack that is lost is named."""
    from runs.queue.services import artifacts, file_store

    for pack in apps.get_model("runs", "Pack").objects.order_by("pk").iterator():
        key = f"packs/{pack.pk.hex[:2]}/{pack.pk.hex}.zip"
        try:
            with file_store.opened(key) as content:
                whole = io.BytesIO(content.read())
        except FileNotFoundError:
            logger.warning("%s is lost: manage.py verify --files names its files", key)
        else:
            with zipfile.ZipFile(whole) as members:
                for name in members.namelist():
                    single = artifacts.key_of(name.removesuffix(".gz"))
                    if not file_store.exists(single):
                        file_store.write(single, members.read(name))
        # Only now: what was cut off begins with this pack again.
        pack.delete()
        file_store.path_of(key).unlink(missing_ok=True)
        if bucket.is_set():
            bucket.remove(key)


class Migration(InSteps):
    dependencies = [("runs", "0062_campaigns_uploaded_as")]

    operations = in_steps(
        [
            migrations.RunPython(take_out, migrations.RunPython.noop, atomic=False),
            migrations.DeleteModel("PackedFile"),
            migrations.DeleteModel("Pack"),
            migrations.RemoveField("instance", "packed_up_to"),
        ]
    )
