"""The Django app."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Keeps, queues, executes and compares benchmark runs."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks that turn a misconfiguration into a message at start.

        And let the subjects that stand on top join those below.
        """
        from runs import checks, on_top  # noqa: F401, PLC0415

        on_top.join()
