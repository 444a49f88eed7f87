"""No secret in a setting is stored; everything else stays unchanged."""

import time

from runs.postgresql_settings.secrets import MASK, masked

SECRET = "s3cr3tPW"
WITH_SECRETS = {
    "primary_conninfo": (
        f"host=a user=b password={SECRET} port=1",
        f"host=a user=b password='{SECRET} and more'",
        f"host=a PASSWORD = '{SECRET}\\' x'",
        f"postgresql://user:{SECRET}@host/db",
        f"sslpassword={SECRET} passfile=/x",
    ),
    "ssl_passphrase_command": (f"echo {SECRET}", f"/bin/pass {SECRET}"),
    "archive_command": (
        f"PGPASSWORD={SECRET} pg_receivewal",
        f"AWS_SECRET_ACCESS_KEY='{SECRET}' x",
    ),
    "citus.node_conninfo": (f"password={SECRET}",),
    "acme.api_token": (SECRET,),
    "vendor.password": (SECRET,),
}
WITHOUT = {
    "password_encryption": "scram-sha-256",
    "primary_conninfo": "host=a user=b port=1 application_name=c",
    "archive_command": "cp %p /archive/%f",
    "ssl_passphrase_command_supports_reload": "off",
    "passwordcheck.min_password_length": "8",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "search_path": '"$user", public',
    "shared_buffers": "512MB",
}


def test_secrets_are_masked():
    left = [
        (name, value)
        for name, values in WITH_SECRETS.items()
        for value in values
        if SECRET in masked(name, value) or MASK not in masked(name, value)
    ]
    assert left == []


def test_what_is_no_secret_stays():
    assert {name: masked(name, value) for name, value in WITHOUT.items()} == WITHOUT


def test_long_texts_take_no_longer_a_letter_than_short_ones():
    begun = time.process_time()
    assert masked("text", "x" * 20_000) == "x" * 20_000
    assert time.process_time() - begun < 1  # 12 seconds when each letter begins a name


def test_masking_again_changes_nothing():
    for name, values in WITH_SECRETS.items():
        for value in values:
            assert masked(name, masked(name, value)) == masked(name, value)
