"""Which BenchLab this is."""

from runs.models import Instance


def name() -> str:
    """The random name of this results database; it marks folders on targets as ours."""
    instance, _created = Instance.objects.get_or_create(pk=1)
    return instance.name.hex
