"""What a reader may see."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from runs.access.selectors import projects
from runs.models import Campaign, Configuration, Membership, Project, Run, Server, Token
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_reader_sees_what_is_public_or_of_own_projects_now():
    private, other = (
        Project.objects.create(slug=slug, name=slug, is_public=False)
        for slug in ("one", "two")
    )
    for slug, project in (("open", None), ("of-one", private), ("of-two", other)):
        factories.campaign(slug, project=project)
    member, somebody = (
        User.objects.create_user(name) for name in ("member", "somebody")
    )
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
        ["open"],
        ["of-one", "open"],
        ["open"],
        ["of-two", "open"],
        ["of-one", "open"],
        ["of-two", "open"],
    ]
    Membership.objects.create(user=somebody, project=other, role="viewer")
    Project.objects.filter(pk=private.pk).update(is_public=True)
    Membership.objects.filter(user=member).delete()
    assert [seen(reader) for reader in readers] == [
        ["of-one", "open"],
        ["of-one", "open"],
        ["of-two", "open"],
        ["of-two", "open"],
        ["of-one", "open"],
        ["of-two", "open"],
    ]


@pytest.fixture
def own():
    return Project.objects.create(slug="own", name="own", is_public=False)


@pytest.fixture
def other():
    return Project.objects.create(slug="other", name="other", is_public=False)


def test_a_token_changes_what_is_of_its_project_and_none_of_the_instance(own, other):
    default, _is_new = Project.objects.get_or_create(
        slug="default", defaults={"name": "d"}
    )
    tokens = [Token(name="t", project=project) for project in (default, own, other)]
    loose, named, ours = (Campaign(project=project) for project in (None, default, own))

    for row, expected in (
        (loose, [True, False, False]),
        (named, [True, False, False]),
        (ours, [False, True, False]),
        (Run(campaign=ours), [False, True, False]),
        (Configuration(project=own), [False, True, False]),
        (Configuration(), [False, False, False]),
        (Server(), [True, True, True]),
    ):
        assert [projects.is_own(row, token) for token in tokens] == expected, row


def test_each_list_of_a_reader_has_what_the_reader_may_see(own, other):
    for slug, project in (("open", None), ("of-own", own), ("of-other", other)):
        factories.campaign(slug, project=project)
        factories.configuration(slug, project=project)
    member, superuser = (
        User.objects.create_user("member"),
        User.objects.create_superuser("root"),
    )
    Membership.objects.create(user=member, project=own, role="viewer")
    names = {"open", "of-own", "of-other"}

    def slugs(rows):
        return {each.slug for each in rows} & names

    for reader, hidden in (
        (AnonymousUser(), {"of-own", "of-other"}),
        (member, {"of-other"}),
        (Token(name="t", project=own), {"of-other"}),
        (superuser, set()),
    ):
        for model in (Campaign, Configuration):
            rows = model.objects.order_by("-pk")
            seen = list(projects.newest(rows, to=reader, number=3 + rows.count()))
            assert slugs(seen) == names - hidden, (reader, model)
            keys = projects.newest_keys(rows, to=reader, number=3 + rows.count())
            assert keys == [each.pk for each in seen]
        assert slugs(projects.hidden_campaigns(reader)) == hidden
        read = {each.slug for each in projects.readable(reader)}
        assert {"own", "other"} - read == {each.removeprefix("of-") for each in hidden}
    for key, expected in ((None, {"open"}), (own.pk, {"open", "of-own"})):
        assert (
            slugs(projects.usable(Configuration.objects.all(), in_project=key))
            == expected
        )


@pytest.mark.parametrize(("number", "parts"), [(20, 21), (21, 1)])
def test_a_list_is_made_of_an_index_a_private_project_up_to_twenty(number, parts):
    user = User()
    user._benchlab_memberships = dict.fromkeys(range(1, number + 1), ("viewer", False))

    assert len(projects.parts(Campaign.objects.order_by("-pk"), to=user)) == parts
