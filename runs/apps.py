"""The Django app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Keeps, queues, executes and compares benchmark runs."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks that turn a misconfiguration into a message at start."""
        from runs import checks  # noqa: F401, PLC0415
