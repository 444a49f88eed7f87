"""Prepared clusters of campaigns that have ended, on a real target."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from runs.models import PreparedCluster
from runs.queue.services import sweeping
from tests import factories
from tests.ssh.directing import names
from tests.ssh.test_sweep import folders, on_target, openssh, server  # noqa: F401

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def needless(server, folders, base_dir, account):  # noqa: F811
    """The folder of a cluster that nobody needs, with data in it."""
    folder = base_dir / "clusters" / "3-abc"
    folders("clusters/3-abc")
    account.succeeds("mkdir", folder / "data")
    campaign = factories.campaign(state="finished")
    PreparedCluster.objects.create(
        server=server, campaign=campaign, key="3-abc", directory=str(folder)
    )
    return folder


def test_a_server_that_works_in_one_is_stopped_before_it_is_removed(
    server,  # noqa: F811
    needless,
    base_dir,
    account,
):
    data = needless / "data"
    process = account.spawn(
        ["sleep", "infinity"], env={"PATH": "/usr/bin:/bin"}, cwd=data
    )
    # As a postmaster's parent does: what nobody waits for counts as running.
    with ThreadPoolExecutor(1) as parent:
        ended = parent.submit(process.wait)
        try:
            (data / "postmaster.pid").write_text(f"{process.pid}\n")
            sweeping.remove_needless_clusters(server_id=server.pk)
            assert ended.done()
        finally:
            process.kill()
    assert names(base_dir / "clusters") == []
    server.refresh_from_db()
    assert not server.needs_sweep
    assert sweeping.needless_clusters(server.pk) == []


def test_one_that_cannot_be_removed_now_is_left_to_a_sweep(
    server,  # noqa: F811
    needless,
    base_dir,
):
    needless.chmod(0o555)
    sweeping.remove_needless_clusters(server_id=server.pk)
    assert names(base_dir / "clusters") == ["3-abc"]
    server.refresh_from_db()
    assert server.needs_sweep
    needless.chmod(0o755)

    sweeping.sweep_where_needed(server_id=server.pk)

    assert names(base_dir / "clusters") == []
