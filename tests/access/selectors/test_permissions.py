"""Who may do what, asked of the functions that apply the table of rights."""

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied

from runs.access.selectors import permissions
from runs.access.selectors.permission_table import GRANTS, Right, Role
from runs.access.selectors.permissions import Denied
from runs.access.services import projects
from runs.models import Annotation, AuditEntry, Membership, Project, Schedule, Token
from tests import factories

pytestmark = pytest.mark.django_db
SCOPE = Token.Scope


def member(role, *of, **fields):
    """Somebody with that role in these projects."""
    user = User.objects.create_user(f"user{User.objects.count()}", **fields)
    for project in of:
        Membership.objects.create(user=user, project=project, role=role.name.lower())
    return user


def token(*scopes, project, by=None):
    return Token(name="t", scopes=list(scopes), project=project, created_by=by)


@pytest.fixture
def public():
    return projects.default()


@pytest.fixture
def private():
    return projects.create(slug="secret", name="A secret", is_public=False)


def test_the_roles_have_an_order():
    assert [role.name for role in sorted(Role)] == [
        "ANYBODY",
        "PERSON",
        "VIEWER",
        "OPERATOR",
        "MAINTAINER",
        "ADMINISTRATOR",
    ]
    assert [int(role) for role in Role] == list(range(6))


@pytest.mark.parametrize(
    ("address", "method", "right"),
    [
        ("campaign-new", "GET", Right.QUEUE),
        ("campaign-list", "HEAD", Right.LOOK),
        ("campaign-list", "OPTIONS", Right.LOOK),
        ("campaign-list", "POST", None),
        ("api:campaign-list", "POST", Right.QUEUE),
        ("campaign-cancel", "GET", None),
    ],
)
def test_reading_needs_the_right_of_get(address, method, right):
    assert permissions.right_of(address, method) == right


def test_an_address_without_a_rule_is_refused():
    with pytest.raises(PermissionDenied, match="nowhere-at-all: nobody said"):
        permissions.right_of("nowhere-at-all", "GET")


def test_a_right_to_an_address_is_that_in_its_objects_project(public, private):
    campaign = factories.campaign("hidden", project=private, on=factories.server())
    run = campaign.runs.first()
    owners = [None, private]
    loose, own = (
        Schedule.objects.create(
            title="s",
            project=owner,
            server=run.server,
            draft={},
            weekdays=[1],
            next_at=campaign.created_at,
        )
        for owner in owners
    )
    both = member(Role.OPERATOR, public)
    Membership.objects.create(user=both, project=private, role="maintainer")

    for address, named, may in (
        ("campaign-cancel", {"slug": "hidden"}, True),
        ("api:campaign-cancel", {"slug": "hidden"}, True),
        ("annotation-add", {"slug": "hidden"}, True),
        ("run-withdraw", {"pk": run.pk}, True),
        ("project-people", {"slug": "secret"}, True),
        ("project-people", {"slug": "default"}, False),
        ("schedule-switch", {"pk": own.pk}, True),
        ("schedule-switch", {"pk": loose.pk}, False),
        ("server-maintain", {"slug": "hidden"}, True),
    ):
        denied = permissions.decide(both, Right.WITHDRAW, address, named)
        assert (denied is None) == may, (address, named)


def test_what_names_no_project_is_of_the_instance_or_of_the_default_one(
    public, private
):
    # The first project's key is next to that of the instance.
    first, _is_new = Project.objects.get_or_create(
        pk=1, defaults={"slug": "a", "name": "A"}
    )
    user = member(Role.MAINTAINER, public, private, *{first} - {public, private})
    ours, theirs = (
        factories.configuration(slug, project=project)
        for slug, project in (("ours", None), ("theirs", private))
    )
    campaigns = [
        factories.campaign(f"of-{each}", project=each) for each in (None, private)
    ]
    annotation = Annotation(campaign=campaigns[1])

    for address, row, project, may in (
        ("configuration-edit", ours, permissions.INSTANCE, False),
        ("configuration-edit", theirs, private.pk, True),
        ("campaign-cancel", campaigns[0], None, True),
        ("campaign-cancel", campaigns[1], private.pk, True),
    ):
        denied = permissions.decide(user, Right.QUEUE, address, {"slug": row.slug})
        assert (denied is None) == may, row.slug
        assert permissions.project_of(row) == project, row.slug
    assert permissions.project_of(annotation) == private.pk
    assert permissions.project_of(private) == private.pk
    schedules = [Schedule(project=owner) for owner in (private, None)]
    assert [permissions.project_of(schedule) for schedule in schedules] == [
        private.pk,
        None,
    ]


def test_a_token_and_a_reader_are_asked_for_the_right_alone(
    private, django_assert_num_queries
):
    reading, queueing = (
        token(scope, project=private) for scope in (SCOPE.READ, SCOPE.QUEUE)
    )
    absent = {"slug": "absent"}

    with django_assert_num_queries(0):
        for actor, right, expected in (
            (AnonymousUser(), Right.LOOK, None),
            (queueing, Right.QUEUE, None),
            (reading, Right.QUEUE, Denied(Right.QUEUE, SCOPE.QUEUE)),
        ):
            assert (
                permissions.decide(actor, right, "campaign-cancel", absent) == expected
            )


def test_a_page_leads_to_what_may_be_done_or_to_the_login(public):
    operator, viewer = member(Role.OPERATOR, public), member(Role.VIEWER, public)

    for address, right, offered in (
        ("campaign-new", Right.QUEUE, [True, True, False]),
        ("campaign-estimate", Right.QUEUE, [True, True, False]),
        ("api:campaign-list", Right.QUEUE, [True, True, False]),
        ("campaign-list", Right.LOOK, [True, True, True]),
        ("server-new", Right.SERVERS, [True, False, False]),
    ):
        assert permissions.right_to_act(address) == right, address
        found = [
            permissions.is_offered(each, address)
            for each in (AnonymousUser(), operator, viewer)
        ]
        assert found == offered, address


def test_what_is_hidden_is_not_there_as_what_is_absent(public, private):
    run = factories.campaign(
        "hidden", project=private, on=factories.server()
    ).runs.first()
    stranger = member(Role.MAINTAINER, public)

    for address, named in (
        ("campaign-cancel", {"slug": "hidden"}),
        ("campaign-cancel", {"slug": "absent"}),
        ("run-cancel", {"pk": run.pk}),
        ("run-cancel", {"pk": 0}),
        ("run-cancel", {"pk": "no number"}),
    ):
        with pytest.raises(permissions.NotThereError):
            permissions.decide(stranger, Right.QUEUE, address, named)
        nobody = permissions.decide(AnonymousUser(), Right.QUEUE, address, named)
        assert nobody == Denied(Right.QUEUE), (address, named)


def test_a_role_is_that_in_the_project_or_the_highest_anywhere(public, private):
    both = member(Role.VIEWER, public)
    Membership.objects.create(user=both, project=private, role="maintainer")

    assert permissions.role_in(both, public.pk) == Role.VIEWER
    assert permissions.role_in(both, private.pk) == Role.MAINTAINER
    assert permissions.role_in(both, None) == Role.MAINTAINER
    assert permissions.role_in(member(Role.VIEWER), None) == Role.PERSON
    assert permissions.role_in(member(Role.OPERATOR, public), private.pk) == Role.PERSON
    assert permissions.role_in(AnonymousUser(), public.pk) == Role.ANYBODY
    assert (
        permissions.role_in(member(Role.VIEWER, is_superuser=True), None)
        == Role.ADMINISTRATOR
    )
    gone = member(Role.VIEWER, is_superuser=True, is_active=False)
    assert permissions.role_in(gone, public.pk) == Role.ANYBODY


def test_roles_are_read_once(public, private, django_assert_num_queries):
    user = member(Role.VIEWER, public)

    with django_assert_num_queries(1):
        assert permissions.role_in(user, public.pk) == Role.VIEWER
        assert permissions.role_in(user, private.pk) == Role.PERSON


def test_a_right_needs_at_least_its_role(public):
    operator = member(Role.OPERATOR, public)

    assert permissions.denied(operator, Right.QUEUE, public.pk) is None
    assert permissions.denied(operator, Right.MAINTAIN, public.pk) == Denied(
        Right.MAINTAIN
    )
    assert permissions.may(operator, Right.QUEUE, public.pk)
    assert not permissions.may(operator, Right.MAINTAIN, public.pk)


def test_a_token_needs_the_scope_and_an_owner_who_may(public, private):
    viewer, operator = member(Role.VIEWER, public), member(Role.OPERATOR, public)

    for scopes, by, right, expected in (
        ([SCOPE.QUEUE], operator, Right.QUEUE, None),
        ([SCOPE.ADMIN], operator, Right.QUEUE, None),
        ([SCOPE.UPLOAD], operator, Right.QUEUE, Denied(Right.QUEUE, SCOPE.QUEUE)),
        ([], operator, Right.LOOK, Denied(Right.LOOK, SCOPE.READ)),
        ([SCOPE.QUEUE], viewer, Right.QUEUE, Denied(Right.QUEUE)),
        ([SCOPE.ADMIN], operator, Right.MAINTAIN, Denied(Right.MAINTAIN)),
        # The machine's administrator made it.
        ([SCOPE.ADMIN], None, Right.SERVERS, None),
    ):
        actor = token(*scopes, project=public, by=by)
        # The token's own project counts, whatever project is asked about.
        assert permissions.denied(actor, right, private.pk) == expected, (scopes, right)


def test_without_a_project_the_default_one_counts(public, private):
    user = member(Role.OPERATOR, public)

    assert permissions.may_for(user, Right.QUEUE, None)
    assert not permissions.may_for(user, Right.QUEUE, private)
    permissions.require(user, Right.QUEUE, None)
    with pytest.raises(PermissionDenied):
        permissions.require(user, Right.QUEUE, private)


def test_a_private_project_is_hidden_from_all_but_its_members(public, private):
    viewer, stranger = member(Role.VIEWER, private), member(Role.VIEWER)

    assert permissions.is_hidden(stranger, private.pk)
    assert permissions.is_hidden(AnonymousUser(), private.pk)
    assert not permissions.is_hidden(viewer, private.pk)
    assert not permissions.is_hidden(stranger, public.pk)
    assert not permissions.is_hidden(stranger, None)


def test_a_right_is_had_in_the_projects_where_the_role_suffices(public, private):
    user = member(Role.OPERATOR, private)
    Membership.objects.create(user=user, project=public, role="viewer")

    assert permissions.may_in(user, Right.QUEUE) == [private.pk]
    assert set(permissions.may_in(user, Right.LOOK)) == {public.pk, private.pk}
    assert permissions.may_in(user, Right.MAINTAIN) == []
    assert list(permissions.choices(user, Right.QUEUE)) == [private]
    assert list(permissions.choices(user, Right.MAINTAIN)) == []
    root = member(Role.VIEWER, is_superuser=True)
    assert permissions.may_in(root, Right.SERVERS) is None
    assert list(permissions.choices(root, Right.SERVERS)) == [private, public]


@pytest.mark.parametrize(
    ("role", "scopes"),
    [
        (Role.VIEWER, {"read"}),
        (Role.OPERATOR, {"read", "upload", "queue"}),
        (Role.MAINTAINER, {"read", "upload", "queue", "server", "admin"}),
    ],
)
def test_a_persons_token_has_only_scopes_that_allow_something(
    public, private, role, scopes
):
    user = member(role, private)

    assert set(permissions.scopes_of(user, private)) == scopes
    assert set(permissions.scopes_of(user, public)) == {"read"}
    assert set(permissions.scopes_of(user)) == scopes
    # Each scope's lowest role is one of a right.
    assert {GRANTS[right].scope for right in Right} == set(Token.Scope)


def test_a_new_object_is_of_the_default_project_or_of_the_first_that_allows_it(
    public, private
):
    other = projects.create(slug="b", name="B", is_public=False)

    assert (
        permissions.project_for(member(Role.OPERATOR, public, private), Right.QUEUE)
        is None
    )
    assert (
        permissions.project_for(member(Role.OPERATOR, other, private), Right.QUEUE)
        == private
    )
    with pytest.raises(PermissionDenied):
        permissions.project_for(member(Role.VIEWER, public, private), Right.QUEUE)
    Project.objects.filter(pk=public.pk).delete()
    assert permissions.project_for(member(Role.OPERATOR, other), Right.QUEUE) == other
    first, _is_new = Project.objects.get_or_create(
        pk=1, defaults={"slug": "a", "name": "A"}
    )
    assert permissions.project_for(member(Role.OPERATOR, first), Right.QUEUE) == first


def test_the_default_project_is_read_once_for_a_reader(
    public, django_assert_num_queries
):
    user = member(Role.VIEWER)

    with django_assert_num_queries(1):
        assert (
            permissions.default_for(user) == permissions.default_for(user) == public.pk
        )


def test_entries_are_read_by_those_who_maintain_their_project(public, private):
    ours, theirs, general = (
        AuditEntry.objects.create(action="changed", subject="x", project=each)
        for each in (public, private, None)
    )

    def read(reader):
        return list(permissions.readable_audit(to=reader))

    assert read(member(Role.VIEWER, is_superuser=True)) == [general, theirs, ours]
    assert read(member(Role.MAINTAINER, public)) == [ours]
    assert read(member(Role.OPERATOR, public)) == []
    assert read(AnonymousUser()) == []
    assert read(token(SCOPE.ADMIN, project=private)) == [theirs]


def test_somebody_who_is_no_account_is_anybody():
    assert permissions.role_in(SimpleNamespace(is_active=True), None) == Role.ANYBODY
