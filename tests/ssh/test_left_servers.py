"""A PostgreSQL that a run which was given up has left in a cluster that the next run needs."""

from dataclasses import replace

import pytest

from tests.ssh.directing import execute, names, processes_below

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


@prepared
def test_it_is_stopped_before_the_cluster_is_used(direct, plan, base_dir, account, binaries):
    data = base_dir / "clusters" / "shared" / "data"
    log, options = base_dir / "clusters" / "left.log", f'-k "{base_dir}" -c listen_addresses='
    pg_ctl = binaries.postgresql16 / "pg_ctl"
    assert account.succeeds(pg_ctl, "start", "-w", "-D", data, "-l", log, "-o", options)
    following = direct(replace(plan, parameters={"scale": 1, "duration": 1}))

    found = execute(following)

    assert found.measurements["tps"] > 0
    assert "stop-what-was-left-shared" in following.reporter.steps
    assert "shared" in names(base_dir / "clusters")
    assert not [line for line in processes_below(base_dir) if "postgres" in line]
