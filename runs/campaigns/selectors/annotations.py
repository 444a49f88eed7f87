"""What people wrote about campaigns and their cells."""

from django.db.models import QuerySet

from runs.models import Annotation, Campaign

# Conclusions first: readers look for them.
ORDER = (Annotation.Kind.CONCLUSION, Annotation.Kind.DISCUSSION, Annotation.Kind.NOTE)


def list_annotations(campaign: Campaign) -> list[Annotation]:
    """With authors and cells, by kind and then by time. One query."""
    annotations = listed().filter(campaign=campaign)
    return sorted(
        annotations,
        key=lambda annotation: (
            ORDER.index(Annotation.Kind(annotation.kind)),
            annotation.pk,
        ),
    )


def listed() -> QuerySet[Annotation]:
    """Annotations by time."""
    related = Annotation.objects.select_related("author", "cell", "campaign")
    return related.order_by("created_at", "pk")


def signature(annotation: Annotation) -> str:
    """Who wrote it and when: ichiro, 2026-11-21."""
    day = f"{annotation.created_at:%Y-%m-%d}"
    return f"{annotation.author.get_username()}, {day}" if annotation.author else day
