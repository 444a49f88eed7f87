"""The Django app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Keeps, queues, executes and compares benchmark runs."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks that turn a misconfiguration into a message at start, and listen."""
        from runs import checks  # noqa: F401, PLC0415
        from runs.web.access import logins  # noqa: PLC0415

        logins.watch()
