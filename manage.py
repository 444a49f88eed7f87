#!/usr/bin/env python
"""Run a management command of BenchLab."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchlab.settings")
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415
    from django.db.utils import OperationalError  # noqa: PLC0415

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        if "SECRET_KEY" in str(error):
            sys.exit(_no_secret())
        sys.exit(
            f"BenchLab: {error} Correct the environment; docs/deployment.md has the variables."
        )
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        said = " ".join(str(error).split())
        if "deadlock" in said:
            sys.exit(
                f"BenchLab: another session had what this one needed: {said} "
                "Stop web, control and workers, and give the same command again."
            )
        sys.exit(
            f"BenchLab: the results database does not answer: {said} "
            "Start PostgreSQL, or correct DATABASE_URL."
        )


def _no_secret() -> str:
    """What stands where a value is missing that an instance keeps in its own folder."""
    return (
        "BenchLab: SECRET_KEY is not set, and BENCHLAB_VAR has no instance so far: start "
        "script/server once, or set the variables; docs/deployment.md has them."
    )


if __name__ == "__main__":
    main()
