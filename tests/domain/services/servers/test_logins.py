"""Ways to servers: hops before them, and those that are refused."""

import pytest

from runs.services.errors import ServiceError
from runs.services.servers import logins as ways
from runs.services.servers import ssh_keys
from tests import factories

pytestmark = pytest.mark.django_db


def reached(slug, jump=None):
    return factories.server(slug, jump=jump, address=slug, ssh_key=ssh_keys.default())


def refusal(server, jump):
    with pytest.raises(ServiceError) as told:
        ways.check_jump(server, jump)
    assert told.value.field == "jump"
    return told.value.code


def test_the_way_leads_from_the_first_hop_to_the_server():
    first = reached("first")
    last = reached("last", reached("second", first))
    assert [login.address.host for login in ways.way_to(last)] == ["first", "second", "last"]


def test_a_server_is_no_hop_of_its_own():
    server = reached("a")
    assert refusal(server, server) == "hop_loop"


def test_a_loop_over_others_is_refused():
    first = reached("first")
    second = reached("second", first)
    assert refusal(first, reached("third", second)) == "hop_loop"


def test_three_hops_are_allowed_and_four_are_not():
    third = reached("3", reached("2", reached("1")))
    fourth = reached("4")
    ways.check_jump(fourth, third)
    fourth.jump = third
    fourth.save()
    assert refusal(reached("5"), fourth) == "too_many_hops"


def test_a_hop_before_a_hop_counts_for_those_behind_it():
    first = reached("1")
    reached("3", reached("2", first))
    outer = reached("b", reached("a"))
    assert refusal(first, outer) == "too_many_hops"
    ways.check_jump(first, reached("alone"))


def test_a_hop_without_a_confirmed_key_is_refused():
    hop = factories.server("hop", state="unconfirmed", host_key="")
    assert refusal(reached("a"), hop) == "hop_not_confirmed"
