"""How long a backup of many runs takes, and its restore into an empty instance; all must be equal.

    .venv/bin/python -m benchmarks.backup [--runs 100000]

The instance that it is restored into has a database, a folder and an encryption key of its own.
Every table is compared row by row, every file by its digest, every secret by what it holds; the
command `restore` verifies all seals itself.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from cryptography.fernet import Fernet

from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.postgresql import SUPERUSER
from benchmarks.own_services import own_services
from tests.migrated import create_database

PASSPHRASE = "of the measurement"
# One file for so many runs, as large as pgbench's log of a minute is when compressed.
RUNS_OF_A_FILE, FILE_BYTES = 10, 20_000
SECRETS = "{private_key_encrypted,encrypted_secret}"
# Counts the rows, and adds up a hash of each without its secrets, which have another key.
TABLE = "SELECT count(*), sum(hashtextextended((to_jsonb(t) - '{}'::text[])::text, 0)) FROM {} t"
STORED_SECRETS = """
SELECT name, convert_from(private_key_encrypted, 'UTF8') FROM runs_sshkey
UNION ALL SELECT url, encrypted_secret FROM runs_webhook ORDER BY 1"""


def main() -> int:
    """Build, back up, restore, compare; 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchlab-backup-") as name:
        folder = Path(name)
        with own_services(folder) as (postgresql, redis):
            # Filling turns off the check of references, which takes a superuser.
            password = (folder / "pg" / f"password-{SUPERUSER}").read_text().strip()
            server = f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{postgresql.port}/postgres"
            old, new = (
                _instance(folder / each, create_database(server, each), redis.url)
                for each in ("old", "new")
            )
            _timed("fill", lambda: _fill(old, options.runs))
            _timed("backup", lambda: _manage(old, "backup", folder / "backups"))
            [made] = (folder / "backups").iterdir()
            print(f"file: {made.stat().st_size / 2**20:.0f} MB", flush=True)
            print(_timed("restore", lambda: _manage(new, "restore", made)), end="")
            differing = sorted(_differing(_content(old), _content(new)))
    print("different: " + (", ".join(differing) or "nothing"))
    return 1 if differing else 0


def _instance(var: Path, url: str, redis_url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "SECRET_KEY": "of the measurement",
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "BENCHLAB_BACKUP_PASSPHRASE": PASSPHRASE,
        "BENCHLAB_VAR": str(var),
        "DJANGO_SETTINGS_MODULE": "benchlab.settings",
    }


def _timed(what: str, do: Any) -> Any:
    began = time.monotonic()
    done = do()
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)
    return done


def _manage(instance: dict[str, str], *words: object) -> str:
    command = [sys.executable, "manage.py", *map(str, words)]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=os.environ | instance,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def _fill(instance: dict[str, str], runs: int) -> None:
    """In a process with that instance's settings; references are right by construction."""
    _manage(instance, "migrate", "--verbosity=0")
    _manage(instance, "sync_scenarios")
    _manage(instance, "load_published")
    filling = f"from benchmarks import backup; backup.fill({runs})"
    _manage(instance, "shell", "--no-imports", "--command", filling)


def fill(runs: int) -> None:
    """Runs with measurements and seals, a file for some of them, and secrets."""
    from django.db import transaction  # noqa: PLC0415

    from benchmarks import big_database  # noqa: PLC0415
    from runs.execution.reporter import ArtifactData  # noqa: PLC0415
    from runs.models import Run, SSHKey, Webhook  # noqa: PLC0415
    from runs.services import seals  # noqa: PLC0415
    from runs.services.access import encryption, projects  # noqa: PLC0415
    from runs.services.database import perform  # noqa: PLC0415
    from runs.services.runs import artifacts  # noqa: PLC0415

    big_database.build(runs)
    own = Run.objects.exclude(origin="published").order_by("pk")
    for place, run in enumerate(own.iterator()):
        if place % RUNS_OF_A_FILE == 0:
            artifacts.store(run=run, data=ArtifactData("log", os.urandom(FILE_BYTES), "text/plain"))
    for number in range(10):
        SSHKey.objects.create(
            name=f"key {number}",
            public_key="ssh-ed25519 AAAA",
            private_key_encrypted=encryption.encrypt(f"private {number}"),
        )
        Webhook.objects.create(
            project=projects.default(),
            url=f"https://{number}.example/",
            encrypted_secret=encryption.encrypt(f"secret {number}").decode(),
        )
    with transaction.atomic():
        perform([seals.requesting(runs=own.values_list("pk", flat=True))])
    while seals.seal():
        pass


def _content(instance: dict[str, str]) -> dict[str, object]:
    """Each table's rows, each file and each secret of an instance."""
    found: dict[str, object] = {}
    key = Fernet(instance["BENCHLAB_ENCRYPTION_KEY"])
    with psycopg.connect(instance["DATABASE_URL"]) as database:
        for name in _tables(database):
            found[name] = database.execute(TABLE.format(SECRETS, name)).fetchone()
        for name, secret in database.execute(STORED_SECRETS):
            found[f"secret {name}"] = key.decrypt(secret.encode())
    for kind in ("artifacts", "seals"):
        folder = Path(instance["BENCHLAB_VAR"]) / kind
        for path in filter(Path.is_file, folder.rglob("*")):
            if not path.name.startswith("."):  # a lock or a draft
                name = f"{kind}/{path.relative_to(folder)}"
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _tables(database: "psycopg.Connection[Any]") -> Iterator[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    for (name,) in database.execute(query).fetchall():
        if name not in {"django_migrations", "django_session", "usersessions_usersession"}:
            yield name


def _differing(old: dict[str, object], new: dict[str, object]) -> set[str]:
    told = [name for name in old if name.startswith(("runs_run", "runs_seal", "runs_artifact"))]
    print(json.dumps({name: int(old[name][0]) for name in sorted(told)}))  # type: ignore[index]
    kinds = ("artifacts/", "seals/", "secret ")
    print({each: sum(name.startswith(each) for name in old) for each in kinds})
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


if __name__ == "__main__":
    sys.exit(main())
