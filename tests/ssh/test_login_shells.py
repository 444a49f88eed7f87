"""Login shells, and what their files do: each works to the end of a run, or is refused as such."""

import os
import shutil
from pathlib import Path

import pytest

from runs.campaigns.services import campaigns
from runs.models import Run, Server
from runs.queue.selectors import certificate_words
from runs.queue.services import execution, leases
from runs.servers.services import host_keys, servers
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.geteuid() != 0, reason="another login shell needs root"),
]

NOISY = 'echo "Welcome back"\necho "benchlab-begin" >&2\n'
STRICT = "set -eu\n"


@pytest.fixture
def server_with(sshd_binary, account, base_dir, binaries):
    """A function that registers a server whose account has this shell and these files."""
    begun = []

    def registered(shell, files, configuration=""):
        sshd = OpenSSH(sshd_binary, short_folder(), account, shell=shell)
        begun.append(sshd)
        sshd.prepare(servers.public_key())
        sshd.start()
        for name, text in files.items():
            path = sshd.folder / "home" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if configuration:
            sshd.configure(configuration)
        server = servers.register(
            name=f"Rack {len(begun)}",
            address="127.0.0.1",
            port=sshd.port,
            username=login_name(account),
            base_dir=f"{base_dir}/lab{len(begun)}",
            bindirs=[str(binaries.postgresql18)],
        )
        fingerprint = servers.fingerprint(server.offered_host_key)
        return servers.inspect(
            server=host_keys.confirm(server=server, fingerprint=fingerprint)
        )

    yield registered
    for each in begun:
        each.stop()
        shutil.rmtree(each.folder)


def there(shell):
    path = shutil.which(shell, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


WORKING = [
    ("sh", {}),
    # Their rules one by one; below are all of them together.
    pytest.param("bash", {".bashrc": NOISY}, marks=pytest.mark.slow),
    pytest.param("bash", {".bashrc": STRICT}, marks=pytest.mark.slow),
    ("bash", {".bashrc": STRICT + NOISY + "set -o pipefail -o noclobber -o noglob\n"}),
    pytest.param("zsh", {".zshenv": NOISY}, marks=pytest.mark.slow),
    ("zsh", {".zshenv": STRICT + "setopt noclobber\n"}),
    ("fish", {".config/fish/config.fish": "echo hello\n"}),
]


@pytest.mark.parametrize(("shell", "files"), WORKING)
def test_a_shell_whose_files_print_or_are_strict_takes_a_run(server_with, shell, files):
    server = server_with(there(shell), files)
    assert (server.state, server.problem) == (Server.State.READY, "")
    scenarios.sync()
    one = server.installations.filter(bindir__in=server.bindirs)
    campaigns.create(draft=factories.draft(server, installations=list(one)))
    execution.execute(leases.claim(server_id=server.pk, holder="worker"))
    run = Run.objects.get()
    assert (run.state, run.message) == (Run.State.FINISHED, "")
    assert not list(Path(f"{server.base_dir}/runs").iterdir())


EXPORTS = (
    'export PGOPTIONS="-c synchronous_commit=off" MALLOC_ARENA_MAX=1 LANG=ja_JP.UTF-8\n'
)


@pytest.mark.probes
def test_two_logins_with_other_files_measure_the_same(server_with):
    """A/A. The variables of one turn synchronous_commit off, which once gave 1.6 times the tps."""
    scenarios.sync()
    found = []
    for files in ({}, {".bashrc": EXPORTS}):
        server = server_with(there("bash"), files)
        one = server.installations.filter(bindir__in=server.bindirs)
        campaigns.create(draft=factories.draft(server, installations=list(one)))
        execution.execute(leases.claim(server_id=server.pk, holder="worker"))
        found.append(Run.objects.latest("pk"))
    assert [(run.state, run.message) for run in found] == [(Run.State.FINISHED, "")] * 2
    assert found[0].settings.settings == found[1].settings.settings
    assert found[1].settings.settings["synchronous_commit"]["setting"] == "on"
    told = [
        [
            each.message
            for each in certificate_words.certificate_sentences(run)
            if each.code == "login"
        ]
        for run in found
    ]
    assert "PGOPTIONS" not in " ".join(told[0])
    given = ("PGOPTIONS", "MALLOC_ARENA_MAX", "LANG=ja_JP.UTF-8", "open_files ")
    assert all(name in told[1][0] for name in given), told
    assert "synchronous_commit" not in told[1][0], "a value may be a password"


REFUSED = [
    ("csh", {".cshrc": "echo hi\n"}, "", "Unmatched"),
    ("tcsh", {}, "", "Unmatched"),
    ("nologin", {}, "", "currently not available"),
    ("false", {}, "", "–"),
    ("sh", {}, "ForceCommand echo only this", "only this"),
    ("bash", {".bashrc": "echo bye; exit 3\n"}, "", "bye"),
]


@pytest.mark.parametrize(("shell", "files", "configuration", "said"), REFUSED)
def test_a_shell_that_executes_nothing_is_refused_with_what_to_do(
    server_with, shell, files, configuration, said
):
    server = server_with(there(shell), files, configuration)
    assert (server.state, server.problem_code) == (Server.State.REFUSED, "no_report")
    assert said in server.problem
    assert "said: b" not in server.problem.replace("said: bye", "")
    assert "usermod -s /bin/sh" in server.problem_remedy
