"""Sessions of a real OpenSSH server: too few of them, and login shells that greet."""

import time
from dataclasses import replace

import pytest

from runs.execution import preflight, sessions
from runs.execution.errors import TargetProblem
from runs.execution.leftovers import marked
from runs.execution.steps import peek, perform
from tests.ssh.directing import execute, left_running, names

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


@pytest.mark.parametrize("allowed", [1, 2])
@prepared
def test_a_run_with_too_few_sessions_fails_with_the_remedy(
    direct, plan, openssh, base_dir, monkeypatch, allowed
):
    monkeypatch.setattr(sessions, "WAITS_SECONDS", (0.1, 0.2))
    openssh.configure(f"MaxSessions {allowed}")
    director = direct(replace(plan, parameters={"scale": 1, "duration": 600}))
    director.bench.look_s = 1
    begun = time.monotonic()
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "too_few_sessions"
    assert "MaxSessions" in told.value.remedy
    assert time.monotonic() - begun < 60
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


def test_preflight_tries_as_many_sessions_as_a_run_needs(on_host, openssh, base, monkeypatch):
    async def look(host):
        return (await preflight.look(host, base, [], [])).allows_sessions

    monkeypatch.setattr(sessions, "WAITS_SECONDS", (0.1,))
    openssh.configure(f"MaxSessions {sessions.NEEDED}")
    assert on_host(look)
    openssh.configure("")
    text = (openssh.folder / "sshd_config").read_text()
    fewer = text.replace(f"MaxSessions {sessions.NEEDED}", f"MaxSessions {sessions.NEEDED - 1}")
    (openssh.folder / "sshd_config").write_text(fewer)
    openssh.configure("")
    assert not on_host(look)


def test_a_login_shell_that_greets_is_not_of_what_a_command_prints(on_host, openssh, base):
    shell = 'printf "Welcome\\nbenchlab"; echo; eval "$SSH_ORIGINAL_COMMAND"'
    openssh.configure(f"ForceCommand {shell}")

    async def act(host):
        await base.claim(host)
        for name in ("1-1", "2-1"):
            await base.make_folder(host, base.below("runs", name))
        steps = base.below("runs", "1-1")
        await perform(host, steps, "talk", ["echo", "first second"])
        return (
            (await host.run(["cat"], stdin=b"in")).stdout,
            await peek(host, steps, "talk", "out", len("first ")),
            await marked(host, base),
        )

    printed, rest, left = on_host(act)
    assert (printed, rest) == (b"in", b"second\n")
    assert left == [base.below("runs", "2-1"), base.below("runs", "1-1")]


def test_a_login_shell_that_starts_nothing_is_told(on_host, openssh):
    openssh.configure("ForceCommand echo This account is not available.")

    async def act(host):
        with pytest.raises(TargetProblem) as told:
            await host.run(["true"])
        return told.value

    problem = on_host(act)
    assert problem.code == "no_report"
    assert "not available" in problem.message
