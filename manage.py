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
        sys.exit(
            f"BenchLab: {error} Correct the environment; docs/deployment.md has the variables."
        )
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        said = " ".join(str(error).split())
        sys.exit(
            f"BenchLab: the results database does not answer: {said} "
            "Start PostgreSQL, or correct DATABASE_URL."
        )


if __name__ == "__main__":
    main()
