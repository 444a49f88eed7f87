"""The first page, where subjects on top add their cards."""

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from django.utils.safestring import SafeString

from runs.shared.hooks import Hook

# Each makes a card for who asks; empty where it has nothing to say.
CARDS: Hook[Callable[[HttpRequest, User | AnonymousUser], SafeString]] = Hook()


def cards(request: HttpRequest) -> list[SafeString]:
    """Those with something to say."""
    made = (make(request, request.user) for make in CARDS)
    return [card for card in made if card]
