"""What a reader may see, in statements that are written once."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from runs.models import Campaign, Membership, Project, Token
from runs.selectors.access import projects
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_statement_is_written_once_for_each_reader_and_finds_what_they_may_see_now():
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
    written = []

    def seen(reader):
        def make():
            written.append(reader)
            shown = projects.visible(Campaign.objects.order_by("-slug"), to=reader)
            return shown.values_list("slug", "factors")[:2]

        around = "SELECT slug FROM (%s) AS found ORDER BY slug"
        return [slug for (slug,) in projects.rows("slugs", make, to=reader, around=around)]

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
    assert written == list(readers)


def test_the_statements_written_last_stay(monkeypatch):
    monkeypatch.setattr(projects, "MOST_WRITTEN", 2)
    projects._written.clear()
    written = []

    def ask(question):
        def make():
            written.append(question)
            return Campaign.objects.values_list("pk")

        projects.rows(question, make, to=AnonymousUser())

    for question in (1, 2, 1, 2, 3, 2, 1):
        ask(question)
    assert written == [1, 2, 3, 1]
