"""What a reader may see."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from runs.models import Campaign, Membership, Project, Token
from runs.selectors.access import projects
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_reader_sees_what_is_public_or_of_own_projects_now():
    private, other = (
        Project.objects.create(slug=slug, name=slug, is_public=False) for slug in ("one", "two")
    )
    for slug, project in (("open", None), ("of-one", private), ("of-two", other)):
        factories.campaign(slug, project=project)
    member, somebody = (User.objects.create_user(name) for name in ("member", "somebody"))
    Membership.objects.create(user=member, project=private, role="viewer")
    superuser = User.objects.create_superuser("root")
    tokens = [Token(name="t", project=project) for project in (private, other)]
    readers = (AnonymousUser(), member, somebody, superuser, *tokens)

    def seen(reader):
        if isinstance(reader, User):
            reader = User.objects.get(pk=reader.pk)  # as the next request loads them
        shown = projects.visible(Campaign.objects.order_by("-slug"), to=reader)
        return sorted(shown.values_list("slug", flat=True)[:2])

    assert [seen(reader) for reader in readers] == [
        *(["open"], ["of-one", "open"], ["open"], ["of-two", "open"]),
        *(["of-one", "open"], ["of-two", "open"]),
    ]
    Membership.objects.create(user=somebody, project=other, role="viewer")
    Project.objects.filter(pk=private.pk).update(is_public=True)
    Membership.objects.filter(user=member).delete()
    assert [seen(reader) for reader in readers] == [
        *(["of-one", "open"], ["of-one", "open"], ["of-two", "open"], ["of-two", "open"]),
        *(["of-one", "open"], ["of-two", "open"]),
    ]
