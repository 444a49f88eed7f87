"""Configurations: what is stored, and what of it stays."""

import pytest

from runs.archive import services
from runs.configurations.services import configurations
from runs.configurations.services.configurations import Content
from runs.models import Configuration
from runs.published import reading
from runs.shared.errors import Refused, ServiceError
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_same_content_is_one_revision():
    configurations.sync()
    configurations.sync()
    for made in Configuration.objects.all():
        assert made.revisions.count() == 1


def test_other_content_is_another_revision_and_the_first_stays():
    made = configurations.create(
        name="Mine", description="", content=Content({"jit": "off"})
    )
    configurations.edit(
        configuration=made,
        name="Mine",
        description="",
        content=Content({"jit": "on"}, (), "18"),
    )
    told = made.revisions.order_by("number").values_list(
        "number", "settings", "written_for"
    )
    assert list(told) == [(1, {"jit": "off"}, ""), (2, {"jit": "on"}, "18")]


def test_what_was_there_before_there_were_revisions_gets_its_first_when_used():
    made = factories.configuration(settings={"jit": "off"})
    revision = configurations.current_revision(configuration=made)
    assert (revision.number, revision.settings) == (1, {"jit": "off"})
    assert configurations.current_revision(configuration=made) == revision


@pytest.mark.parametrize("name", ["new", "Diff", "check", "names"])
def test_no_slug_is_that_of_another_page(name):
    made = configurations.create(name=name, description="", content=Content())
    assert made.slug == f"{name.lower()}-2"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (Content({"work_mem": "1kB"}), "out_of_range"),
        (Content({"checkpoint_segments": "3"}, (), "18"), "removed"),
        (Content({}, ("--pgdata=/x",)), "initdb_option_refused"),
        (Content({}, (), "7.4"), "version_unknown"),
    ],
)
def test_what_would_not_start_is_not_stored(content, code):
    with pytest.raises(Refused) as told:
        configurations.create(name="Mine", description="", content=content)
    assert [fault.code for fault in told.value.faults] == [code]
    assert not Configuration.objects.exists()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (Content({"work_mem": "1kB"}), "out_of_range"),
        (Content({"checkpoint_segments": "3"}, (), "18"), "removed"),
        (Content({}, ("--pgdata=/x",)), "initdb_option_refused"),
    ],
)
def test_an_edit_that_would_not_start_leaves_the_configuration_as_it_was(content, code):
    configuration = configurations.create(
        name="Mine", description="", content=Content({"jit": "off"})
    )
    with pytest.raises(Refused) as refused:
        configurations.edit(
            configuration=configuration, name="Mine", description="", content=content
        )
    assert [fault.code for fault in refused.value.faults] == [code]
    configuration.refresh_from_db()
    assert configuration.settings == {"jit": "off"}
    assert configuration.revisions.count() == 1


def test_an_edit_without_a_name_is_refused():
    configuration = configurations.create(
        name="Mine", description="", content=Content()
    )
    with pytest.raises(ServiceError) as refused:
        configurations.edit(
            configuration=configuration, name=" ", description="", content=Content()
        )
    assert (refused.value.code, refused.value.field) == ("no_name", "name")


def test_what_is_not_ones_own_is_not_edited():
    made = configurations.built_in()
    with pytest.raises(ServiceError) as told:
        configurations.edit(
            configuration=made, name="x", description="", content=Content()
        )
    assert told.value.code == "not_own"


def test_published_configurations_know_origin_and_version():
    scenarios.sync()
    services.load(files=reading.files())
    found = Configuration.objects.get(slug="wg1-2013-scale-up")
    assert (found.origin, found.written_for) == ("published", "9.3")
    assert set(Configuration.objects.values_list("origin", flat=True)) == {"published"}


def test_no_password_of_a_setting_is_stored():
    content = Content({"primary_conninfo": "host=db1 password=sesame"})
    configuration = configurations.store(
        slug="x", name="X", description="", content=content
    )
    configuration.refresh_from_db()
    assert "sesame" not in str(configuration.settings)
