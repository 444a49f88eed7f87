"""What people wrote beside campaigns and their cells."""

from django.db.models import QuerySet

from runs.models import Annotation, Campaign

# Conclusions first: they are what a reader wants to know.
ORDER = {
    Annotation.Kind.CONCLUSION: 0,
    Annotation.Kind.DISCUSSION: 1,
    Annotation.Kind.NOTE: 2,
}


def of_campaign(campaign: Campaign) -> list[Annotation]:
    """With authors and cells, by kind and then as they were written. One query."""
    found = listed().filter(campaign=campaign)
    return sorted(found, key=lambda each: (ORDER[Annotation.Kind(each.kind)], each.pk))


def listed() -> QuerySet[Annotation]:
    """Annotations in the order in which they were written."""
    related = Annotation.objects.select_related("author", "cell", "campaign")
    return related.order_by("created_at", "pk")


def signature(annotation: Annotation) -> str:
    """Who wrote it and when: ichiro, 2026-11-21."""
    day = f"{annotation.created_at:%Y-%m-%d}"
    return f"{annotation.author.get_username()}, {day}" if annotation.author else day
