"""The project: settings, URLs, Celery and the embedded services."""

from benchlab.celery import app as celery_app

__all__ = ("celery_app",)
