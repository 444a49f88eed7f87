"""The tokens that a person sees."""

from django.contrib.auth.models import User
from django.db.models import QuerySet

from runs.models import Token


def listed(user: User) -> QuerySet[Token]:
    """A person's own tokens, the newest first; an administrator sees all."""
    tokens = Token.objects.select_related("project", "created_by").order_by("-created_at", "-pk")
    return tokens if user.is_superuser else tokens.filter(created_by=user)
