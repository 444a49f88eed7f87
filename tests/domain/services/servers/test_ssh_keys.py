"""Keys: generated, uploaded as ssh-keygen writes them, encrypted, rotated, deleted when unused."""

import subprocess

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.core.management import CommandError, call_command

from runs.models import SSHKey
from runs.services.errors import ServiceError
from runs.services.servers import logins as ways
from runs.services.servers import ssh_keys
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A private key as ssh-keygen writes it: (its text, the public key's two words)."""
    folder = tmp_path_factory.mktemp("keys")

    def make(*options, passphrase=""):
        path = folder / str(len(list(folder.iterdir())))
        subprocess.run(["ssh-keygen", "-q", "-N", passphrase, "-f", path, *options], check=True)
        public = path.with_name(path.name + ".pub").read_text()
        return path.read_text(), " ".join(public.split()[:2])

    return make


FORMS = [
    pytest.param(("-t", "ed25519"), id="ed25519"),
    pytest.param(("-t", "rsa", "-b", "2048", "-m", "PEM"), id="RSA in PEM"),
    pytest.param(("-t", "ecdsa", "-m", "PKCS8"), id="ECDSA in PKCS#8"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("passphrase", ["", "open sesame"])
def test_a_key_of_ssh_keygen_is_kept_without_its_passphrase(made, form, passphrase):
    text, public = made(*form, passphrase=passphrase)
    # As a browser sends a text area.
    given = text.replace("\n", "\r\n").rstrip()
    key = ssh_keys.upload(name="rack", private_key=given, passphrase=passphrase)
    assert key.public_key.startswith(public)
    assert ssh_keys.private_key(key).startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert b"PRIVATE" not in bytes(key.private_key_encrypted)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("passphrase", "code"), [("", "passphrase_missing"), ("wrong", "wrong_passphrase")]
)
def test_a_passphrase_that_does_not_open_is_said_as_such(made, form, passphrase, code):
    text, _public = made(*form, passphrase="open sesame")
    with pytest.raises(ServiceError) as told:
        ssh_keys.upload(name="rack", private_key=text, passphrase=passphrase)
    assert (told.value.code, told.value.field) == (code, "passphrase")
    assert not SSHKey.objects.exists()


def test_what_is_no_private_key_is_said_as_such(made):
    text, public = made("-t", "ed25519")
    weak, _public = made("-t", "rsa", "-b", "1024")
    cases = {
        "": "not_a_private_key",
        "hello": "not_a_private_key",
        public: "not_a_private_key",
        text + "x" * 30_000: "not_a_private_key",
        text[:100] + text[140:]: "private_key_unreadable",
        weak: "ssh_key_too_weak",
    }
    for given, code in cases.items():
        with pytest.raises(ServiceError) as told:
            ssh_keys.upload(name="rack", private_key=given)
        assert (told.value.code, told.value.field) == (code, "private_key")


def test_a_name_and_a_key_are_kept_once(made):
    text, _public = made("-t", "ed25519")
    ssh_keys.upload(name="rack", private_key=text)
    with pytest.raises(ServiceError) as told:
        ssh_keys.upload(name="other", private_key=text)
    assert (told.value.code, told.value.field) == ("ssh_key_exists", "private_key")
    with pytest.raises(ServiceError) as told:
        ssh_keys.generate(name="rack")
    assert (told.value.code, told.value.field) == ("ssh_key_exists", "name")


def test_generated_keys_differ():
    first, second = ssh_keys.generate(name="a"), ssh_keys.generate(name="b")
    assert first.public_key != second.public_key
    assert first.public_key.startswith("ssh-ed25519 ")


def test_a_key_is_deleted_only_when_no_server_needs_it():
    key = ssh_keys.generate(name="a")
    server = factories.server("db1", ssh_key=key)
    with pytest.raises(ServiceError) as told:
        ssh_keys.delete(key=key)
    assert told.value.code == "ssh_key_in_use"
    assert "db1" in told.value.message
    server.delete()
    ssh_keys.delete(key=key)
    assert not SSHKey.objects.filter(name="a").exists()


def test_secrets_move_to_a_new_key_and_the_old_one_is_needed_no_more(settings, capsys):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEY = old
    key = ssh_keys.generate(name="a")
    private = ssh_keys.private_key(key)
    settings.ENCRYPTION_KEY = f"{new}, {old}"
    assert ssh_keys.private_key(key) == private
    call_command("rotate_encryption_key")
    assert "Encrypted 1 secrets" in capsys.readouterr().out
    key.refresh_from_db()
    settings.ENCRYPTION_KEY = new
    assert ssh_keys.private_key(key) == private
    settings.ENCRYPTION_KEY = old
    with pytest.raises(InvalidToken):
        ssh_keys.private_key(key)


def test_what_no_key_opens_is_named_and_the_rest_is_rotated(settings):
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    ssh_keys.generate(name="lost")
    settings.ENCRYPTION_KEY = Fernet.generate_key().decode()
    kept = ssh_keys.generate(name="kept")
    before = bytes(kept.private_key_encrypted)
    with pytest.raises(CommandError, match="SSH key lost"):
        call_command("rotate_encryption_key")
    kept.refresh_from_db()
    assert bytes(kept.private_key_encrypted) != before


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
