"""The fence on a target: a worker that was given up starts and removes nothing any more."""

from dataclasses import replace

import pytest

from runs.execution.fence import Fence, LeaseLost
from runs.execution.steps import perform
from tests.ssh.directing import raised

pytestmark = pytest.mark.openssh


@pytest.fixture
def fence(base_dir) -> Fence:
    return Fence(f"{base_dir}/leases/1", 5)


def test_a_step_of_the_present_holder_is_performed(on_host, base_dir, fence):
    async def act(host):
        await raised(fence, host)
        await raised(fence, host)
        return await perform(host, str(base_dir), "one", ["echo", "a b"], stdin="x", fence=fence)

    assert on_host(act).stdout == "a b\n"


def test_a_step_of_an_older_token_is_not_started(on_host, base_dir, fence):
    async def act(host):
        await raised(fence, host)
        await raised(replace(fence, token=12), host)
        with pytest.raises(LeaseLost) as told:
            await perform(host, str(base_dir), "one", ["touch", f"{base_dir}/harm"], fence=fence)
        return told.value.token

    assert on_host(act) == 12
    assert not (base_dir / "harm").exists()


def test_an_older_token_cannot_be_raised_again(on_host, base_dir, fence):
    async def act(host):
        await raised(replace(fence, token=12), host)
        with pytest.raises(LeaseLost):
            await raised(fence, host)

    on_host(act)
    assert [path.name for path in (base_dir / "leases" / "1").iterdir()] == ["12"]


def test_the_tokens_of_another_server_on_the_same_machine_do_not_count(on_host, base_dir, fence):
    async def act(host):
        await raised(Fence(f"{base_dir}/leases/2", 99), host)
        await raised(fence, host)
        return await perform(host, str(base_dir), "one", ["true"], fence=fence)

    assert on_host(act).exit_status == 0
