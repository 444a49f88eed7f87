"""Whether the checkout can be tagged as a release: version, changelog, and migrations.

`script/release` prints what stands in the way, or the command that tags. A database of the last
release (its tag, or `--from REF`) is really migrated to this one. `--build` makes its files.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

from tests.migrated import ROOT, create_database, own_postgresql

HEADING = re.compile(
    r"^## (?P<version>\S+)(?: \((?P<date>\d{4}-\d\d-\d\d)\))?$", re.MULTILINE
)


def problems_of_changelog(changelog: str, version: str, today: date) -> list[str]:
    """What is wrong with the newest section for a release of that version today."""
    newest = HEADING.search(changelog)
    if newest is None or newest["version"] != version:
        found = newest["version"] if newest else "nothing"
        return [f"CHANGELOG.md begins with {found}, pyproject.toml says {version}."]
    if newest["date"] is None:
        return [f"The section {version} of CHANGELOG.md has no date."]
    if date.fromisoformat(newest["date"]) > today:
        return [f"The section {version} of CHANGELOG.md is dated in the future."]
    after = HEADING.search(changelog, newest.end())
    section = changelog[newest.end() : after.start() if after else None]
    return (
        [] if section.strip() else [f"The section {version} of CHANGELOG.md is empty."]
    )


def problems_of_version(version: str, last: str | None) -> list[str]:
    """Whether the version comes after that of the last tag."""
    if last is None or _numbers(version) > _numbers(last.removeprefix("v")):
        return []
    return [f"Version {version} does not come after {last}."]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def problems_of_migrations(base: str | None) -> list[str]:
    """Whether released migrations are as they were, and a database of `base` can be migrated."""
    if base is None:
        return _migrated_from(None)
    changed = _git(
        "diff", "--name-status", "--diff-filter=MD", base, "--", "runs/migrations/*.py"
    )
    rewritten = [
        f"A released migration was changed: {line}" for line in changed.splitlines()
    ]
    return rewritten or _migrated_from(base)


def _migrated_from(base: str | None) -> list[str]:
    """Migrate an empty database by the code of `base` and then by ours."""
    with (
        own_postgresql() as postgresql,
        tempfile.TemporaryDirectory(prefix="bl-") as folder,
    ):
        url = create_database(postgresql.url, "release")
        if base is not None:
            before = Path(folder) / "before"
            _extract(base, before)
            if failed := _manage(before, url, "migrate"):
                return [f"{base} cannot be migrated itself: {failed}"]
        failed = _manage(ROOT, url, "migrate") or _manage(
            ROOT, url, "makemigrations", "--check", "--dry-run"
        )
        return [f"Migrating from {base or 'nothing'} fails: {failed}"] if failed else []


def _extract(ref: str, folder: Path) -> None:
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", ref], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)


def _manage(folder: Path, url: str, *command: str) -> str:
    """Run a command of manage.py; the last line of its error, or nothing."""
    from cryptography.fernet import Fernet

    environment = os.environ | {
        "DATABASE_URL": url,
        "SECRET_KEY": "only for a release",
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
    }
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        ""
        if done.returncode == 0
        else (done.stderr or done.stdout).strip().split("\n")[-1]
    )


def build(folder: Path) -> Path:
    """The wheel, in `folder`, beside that of `benchlab-pair` and the checksums of both.

    `sha256sum --check` reads these. The translations have to be compiled. Raises CalledProcessError
    with what the builder says.
    """
    _build(ROOT, folder)
    [wheel] = folder.glob("benchlab-*.whl")
    wheels = (wheel, build_pair(folder))
    digests = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in wheels
    ]
    (folder / "SHA256SUMS").write_text("".join(digests))
    return wheel


def build_pair(folder: Path) -> Path:
    """The wheel of `benchlab-pair`, in `folder`. Raises CalledProcessError."""
    _build(ROOT / "runs/pair", folder)
    [wheel] = folder.glob("benchlab_pair-*.whl")
    return wheel


def _build(project: Path, folder: Path) -> None:
    command = [
        "uv",
        "build",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
    ]
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [*command, "--out-dir", str(folder), str(project)],
        env=os.environ | {"PATH": programs},
        capture_output=True,
        text=True,
        check=True,
    )


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main() -> int:
    """Print the problems, or how to tag."""
    parser = argparse.ArgumentParser(prog="script/release", description=__doc__)
    parser.add_argument(
        "--from", dest="base", help="the last release, by default the last tag"
    )
    parser.add_argument("--build", action="store_true", help="make the wheel, in dist/")
    options = parser.parse_args()
    if options.build:
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        print(build(ROOT / "dist"))
        return 0
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    last = _git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*") or None
    today = datetime.now(UTC).date()
    problems = [
        *(["Something is not committed."] if _git("status", "--porcelain") else []),
        *problems_of_version(version, last),
        *problems_of_changelog((ROOT / "CHANGELOG.md").read_text(), version, today),
        *problems_of_migrations(options.base or last),
    ]
    for problem in problems:
        print(f"script/release: {problem}", file=sys.stderr)
    if not problems:
        print(
            f"Ready. After script/lint and script/test --all: git tag -a v{version} -m {version}"
        )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
