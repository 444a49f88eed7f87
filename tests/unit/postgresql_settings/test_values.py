"""How each version reads and writes values, what the catalogue knows, and the codes of refusals."""

import csv

import pytest

from runs.postgresql_settings import (
    catalogue,
    conf_file,
    conf_text,
    ownership,
    record,
    values,
)
from runs.postgresql_settings.catalogue import MAJORS, UnknownVersion, setting
from runs.postgresql_settings.completion import complete, versions
from runs.postgresql_settings.secrets import MASK, masked
from runs.postgresql_settings.validation import check
from runs.postgresql_settings.values import BadValue, parse
from tests.patterns import min_of

# How each version reads and writes values; the refusals carry a stable code.


@pytest.mark.parametrize(
    ("name", "major", "text", "number"),
    [
        ("shared_buffers", "9.3", "200GB", 26214400),
        ("shared_buffers", "9.3", "2048MB", 262144),
        ("shared_buffers", "9.3", "131072", 131072),
        ("shared_buffers", "10", "140kB", 17),  # versions to 11 cut off
        ("shared_buffers", "12", "140kB", 18),  # later ones round
        ("max_wal_size", "9.5", "160GB", 10240),
        ("max_wal_size", "9.6", "40MB", 2),
        ("max_wal_size", "10", "160GB", 163840),
        ("work_mem", "9.4", "1TB", 1073741824),
        ("work_mem", "11", "65536B", 64),
        ("work_mem", "12", "30.1MB", 30822),
        ("work_mem", "12", "1e3", 1000),
        ("work_mem", "9.2", " 10 MB ", 10240),
        ("work_mem", "9.2", "010MB", 8192),
        ("work_mem", "9.2", "0x10MB", 16384),
        ("checkpoint_timeout", "9.6", "2h", 7200),
        ("checkpoint_timeout", "9.2", "30min", 1800),
        ("statement_timeout", "16", "1d", 86_400_000),
        ("vacuum_cost_delay", "12", "500us", 0.5),
        ("vacuum_cost_delay", "12", "2", 2),
        ("wal_keep_segments", "9.2", "32", 32),
        ("autovacuum_vacuum_scale_factor", "9.2", ".05", 0.05),
        ("seq_page_cost", "9.2", "1e-1", 0.1),
        ("log_rotation_age", "9.2", "-0", 0),
        ("autovacuum_work_mem", "9.4", "-1", -1),
    ],
)
def test_a_number_is_read_in_the_settings_own_unit(name, major, text, number):
    assert parse(text, setting(name, major)) == pytest.approx(number)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", True),
        ("ON", True),
        ("true", True),
        ("t", True),
        ("y", True),
        ("1", True),
        ("of", False),
        ("off", False),
        ("fal", False),
        ("n", False),
        ("0", False),
    ],
)
def test_a_bool_takes_any_beginning_that_is_clear(text, value):
    assert parse(text, setting("fsync", "9.2")) is value


@pytest.mark.parametrize(
    ("name", "major", "text", "word"),
    [
        ("synchronous_commit", "9.2", "Remote_Write", "remote_write"),
        ("synchronous_commit", "9.2", "yes", "on"),
        ("wal_level", "9.6", "hot_standby", "replica"),
        ("wal_level", "9.5", "hot_standby", "hot_standby"),
        ("password_encryption", "13", "on", "md5"),
        ("wal_compression", "15", "on", "pglz"),
        ("wal_compression", "15", "true", "pglz"),
        ("wal_compression", "15", "zstd", "zstd"),
        ("io_method", "18", "io_uring", "io_uring"),
        ("log_min_messages", "9.2", "debug", "debug2"),
        ("huge_pages", "9.4", "1", "on"),
    ],
)
def test_an_enum_is_read_as_the_word_that_the_server_shows(name, major, text, word):
    assert parse(text, setting(name, major)) == word


@pytest.mark.parametrize(
    ("name", "major", "text", "code"),
    [
        ("fsync", "9.2", "o", "invalid_boolean"),
        ("fsync", "9.2", "", "invalid_boolean"),
        ("fsync", "9.2", "maybe", "invalid_boolean"),
        ("wal_level", "9.2", "logical", "invalid_choice"),
        ("synchronous_commit", "9.5", "remote_apply", "invalid_choice"),
        ("password_encryption", "14", "on", "invalid_choice"),
        ("client_min_messages", "12", "panic", "invalid_choice"),
        ("work_mem", "9.2", "much", "invalid_number"),
        ("work_mem", "9.2", "", "invalid_number"),
        ("work_mem", "9.2", "099", "invalid_number"),
        ("work_mem", "18", "nan", "invalid_number"),
        ("work_mem", "18", "10mb", "wrong_unit"),
        ("work_mem", "18", "10s", "wrong_unit"),
        ("checkpoint_timeout", "18", "1 hour", "wrong_unit"),
        ("work_mem", "9.3", "1TB", "unit_too_new"),
        ("work_mem", "10", "65536B", "unit_too_new"),
        ("checkpoint_timeout", "11", "30000000us", "unit_too_new"),
        ("max_connections", "18", "100kB", "no_unit"),
        ("work_mem", "11", "1.5MB", "fraction_too_new"),
        ("vacuum_cost_delay", "11", "0.5", "fraction_too_new"),
        ("shared_buffers", "9.2", "64kB", "out_of_range"),
        ("checkpoint_timeout", "9.5", "2h", "out_of_range"),
        ("checkpoint_completion_target", "9.2", "1.1", "out_of_range"),
        ("max_connections", "9.2", "0", "out_of_range"),
    ],
)
def test_what_the_server_refuses_is_refused_with_a_code(name, major, text, code):
    with pytest.raises(BadValue) as refused:
        parse(text, setting(name, major))
    assert refused.value.finding.code == code


def test_out_of_range_says_the_range_in_units():
    with pytest.raises(BadValue) as refused:
        parse("10kB", setting("shared_buffers", "9.2"))
    found = refused.value.finding
    assert found.remedy % found.parameters == "Choose a value from 128kB to 8TB."


def test_a_unit_of_another_kind_says_which_there_are():
    with pytest.raises(BadValue) as refused:
        parse("4mb", setting("work_mem", "9.3"))
    assert refused.value.finding.parameters["units"] == "kB, MB, GB"


@pytest.mark.parametrize(
    ("name", "major", "value", "text"),
    [
        ("shared_buffers", "9.3", 26214400, "200GB"),
        ("shared_buffers", "9.3", 17, "136kB"),
        ("work_mem", "9.3", 1073741824, "1024GB"),  # 9.3 knows no TB
        ("work_mem", "9.4", 1073741824, "1TB"),
        ("max_wal_size", "9.5", 9, "144MB"),
        ("vacuum_cost_delay", "12", 0.5, "500us"),
        ("checkpoint_timeout", "16", 5400, "90min"),
        ("autovacuum_work_mem", "16", -1, "-1"),
        ("statement_timeout", "16", 0, "0"),
        ("random_page_cost", "16", 1.1, "1.1"),
        ("fsync", "16", False, "off"),
        ("wal_level", "16", "replica", "replica"),
    ],
)
def test_a_value_is_written_in_its_largest_whole_unit(name, major, value, text):
    assert values.spelled(value, setting(name, major)) == text


@pytest.mark.parametrize("major", ["9.2", "9.5", "10", "11", "12", "16", "18", "19"])
def test_every_default_is_read_again_as_it_was(major):
    from runs.postgresql_settings.catalogue import catalogue

    for found in catalogue(major).values():
        if found.is_number and found.boot:
            again = parse(values.default(found), found)
            assert again == pytest.approx(float(found.boot)), found.name


def test_memory_comes_in_bytes_and_special_values_as_none():
    assert values.convert_to_bytes("1GB", setting("shared_buffers", "16")) == 1024**3
    assert values.convert_to_bytes("-1", setting("autovacuum_work_mem", "16")) is None
    with pytest.raises(ValueError, match="no amount of memory"):
        values.convert_to_bytes("1", setting("checkpoint_timeout", "16"))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"archive_command": "true %p"}, "runs_command"),
        ({"restore_command": "true; id"}, "runs_command"),
        ({"archive_cleanup_command": "$(id)"}, "runs_command"),
        ({"recovery_end_command": "`id`"}, "runs_command"),
        ({"ssl_passphrase_command": "cat /x"}, "runs_command"),
        ({"repmgr.service_start_command": "id"}, "runs_command"),
        ({"plperl.on_init": "system 'id'"}, "runs_command"),
        ({"pllua.on_init": "os.execute('id')"}, "runs_command"),
        ({"PLLua.On_Init": "os.execute('id')"}, "runs_command"),
        ({"of_tomorrow.startup": "1"}, "runs_command"),
        ({"archive_library": "/tmp/x"}, "library_elsewhere"),
        ({"shared_preload_libraries": "pg_prewarm,../x"}, "library_elsewhere"),
        ({"shared_preload_libraries": '"/tmp/x"'}, "library_elsewhere"),
        ({"local_preload_libraries": "$libdir/../x"}, "library_elsewhere"),
        ({"jit_provider": "/tmp/x"}, "library_elsewhere"),
        ({"dynamic_library_path": "$libdir:/tmp"}, "library_elsewhere"),
        ({"dynamic_library_path": "$libdir/../x"}, "library_elsewhere"),
        ({"basic_archive.archive_directory": "/tmp"}, "outside_cluster"),
        ({"pgaudit.x": "something of ours"}, "hidden_value"),
    ],
)
def test_what_would_run_on_the_server_is_refused(given, code):
    [finding] = check(given, ["16"])
    assert (finding.severity, finding.code) == ("error", code)
    assert finding.remedy


@pytest.mark.parametrize(
    "given",
    [
        *({"archive_command": value} for value in ownership.HARMLESS_COMMANDS),
        {"restore_command": " true "},
        {"ssl_passphrase_command_supports_reload": "on"},
        {"log_replication_commands": "on"},
        {"plperl.on_init": ""},
        {"plperl.use_strict": "on"},
        {
            "auto_explain.log_min_duration": "250ms",
            "shared_preload_libraries": "auto_explain",
        },
        {
            "pg_stat_statements.track": "all",
            "shared_preload_libraries": "pg_stat_statements",
        },
        {
            "shared_preload_libraries": 'pg_stat_statements, "auto_explain",$libdir/pg_prewarm'
        },
        {"local_preload_libraries": "$libdir/plugins/x"},
        {"archive_library": "basic_archive"},
        {"dynamic_library_path": "$libdir:$libdir/extra"},
        {"jit_provider": "llvmjit"},
    ],
)
def test_what_does_nothing_and_what_is_installed_is_allowed(given):
    assert check(given, ["16"]) == ()


SECRET = "s3cr3tPW"
COMMANDS = (
    f"curl -u user:{SECRET} https://x/%f -T %p",
    f"curl -H 'Authorization: Bearer {SECRET}' -T %p https://x/",
    f"curl -H 'X-Api-Key: {SECRET}' -T %p https://x/",
    f"wal-push --key {SECRET} %p",
    f"wal-push --key={SECRET} %p",
    f"AZURE_STORAGE_KEY={SECRET} azcopy %p",
    f"AWS_SECRET_ACCESS_KEY='{SECRET} x' aws s3 cp %p",
    f"PGPASSWORD={SECRET} pg_receivewal",
    f"env SAS='{SECRET}' azcopy %p",
    f"sshpass -p{SECRET} scp %p a:",
    f"sshpass -p '{SECRET}' scp %p a:",
    f"echo {SECRET}",
    f"/bin/pass {SECRET}",
    f"'{SECRET}'",
    f"$({SECRET})",
    f"test ! -f /x/{SECRET} && cp %p /x/%f",
    f"mysql://u:{SECRET}@h/",
    f"x\t{SECRET}",
    f"openssl enc -k {SECRET}",
)
NAMES_OF_COMMANDS = (
    "archive_command",
    "restore_command",
    "ssl_passphrase_command",
    "archive_cleanup_command",
    "recovery_end_command",
    "repmgr.service_start_command",
    "Acme.Command",
)
CUSTOM = (
    "passwd",
    "pwd",
    "password",
    "credential",
    "credentials",
    "auth",
    "api_key",
    "apikey",
    "private_key",
    "token",
    "secret",
    "secret_key",
    "access_key",
    "account_key",
    "passphrase",
    "x",
    "key",
    "license",
    "dsn",
    "url",
    "bearer",
    "salt",
    "signature",
    "sas",
    "Api-Key",
)
WITH_SECRETS = {
    "primary_conninfo": (
        f"host=a user=b password={SECRET} port=1",
        f"host=a user=b password='{SECRET} and more'",
        f"host=a PASSWORD = '{SECRET}\\' x'",
        f"host=a password='{SECRET}''{SECRET}",
        f"host=a password='x {SECRET}\\",
        f'host=a password="x {SECRET}',
        f"postgresql://user:{SECRET}@host/db",
        f"postgresql://host/db?user=a&password={SECRET}&port=1",
        f"sslpassword={SECRET} passfile=/x",
    ),
    "log_line_prefix": (f"Authorization: Bearer {SECRET}", f"x-api-key: {SECRET}"),
    **dict.fromkeys(NAMES_OF_COMMANDS, COMMANDS),
    **{f"{each}.{name}": (SECRET,) for each in ("app", "pgaudit") for name in CUSTOM},
    **{
        f"acme_{name}": (SECRET,)
        for name in ("api_key", "passwd", "auth", "private_key")
    },
    "citus.node_conninfo": (f"password={SECRET}",),
    "acme.list": (f"a, {SECRET}", "on, 1, x" + SECRET),
    "acme.api_token": (SECRET, "12345"),
    "vendor.password": (SECRET, "12345"),
    "acme.hex": ("0xDEADBEEF", "12345678901234567890"),
}
WITHOUT = {
    "password_encryption": "scram-sha-256",
    "primary_conninfo": "host=a user=b port=1 application_name=c",
    "archive_command": "(disabled)",
    "restore_command": "/opt/restore.sh",
    "ssl_passphrase_command_supports_reload": "off",
    "passwordcheck.min_password_length": "8",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "search_path": '"$user", public',
    "shared_buffers": "512MB",
    "authentication_timeout": "1min",
    "krb_server_keyfile": "FILE:/etc/krb5.keytab",
    "app.limit": "-1.5e3",
    "app.token_limit": "100",
    "app.auth": "on",
    "app.memory": "128 MB",
    "app.level": "debug1",
    "app.empty": "",
    "auto_explain.log_format": "json",
    "pgaudit.log": "ddl, write",
    "pg_stat_statements.track": "top",
    "vchordrq.probes": "10,20",
    "cron.database_name": "bench",
    "plpgsql.extra_errors": "shadowed_variables",
}


def test_of_a_command_the_program_is_shown():
    shown = {
        "cp %p /archive/%f": f"cp {MASK}",
        "/opt/wal-g wal-push %p": f"/opt/wal-g {MASK}",
        "KEY=x y": MASK,
        "true": "true",
    }
    assert {value: masked("archive_command", value) for value in shown} == shown


def test_secrets_are_masked():
    left = [
        (name, value)
        for name, values in WITH_SECRETS.items()
        for value in values
        if value.strip() in masked(name, value)
        or SECRET in masked(name, value)
        or MASK not in masked(name, value)
    ]
    assert left == []


def test_what_is_no_secret_stays():
    assert {name: masked(name, value) for name, value in WITHOUT.items()} == WITHOUT


HOSTILE = (
    "x",
    "password",
    "password=",
    "password='",
    "a='",
    'a="',
    "'",
    "''",
    "\\",
    "a\\'",
    "=",
    " ",
    "-",
    "a ",
    "a =",
    "a:",
    "://",
    "://a:",
    "://a:b",
    "@",
    "authorization: ",
    "authorization ",
    "a,",
    "a;",
    "pass_word",
    "1",
    "1.",
    "1e",
    "a.b",
    "ｘ",
    "a'\\",
    "password =",
    "\n",
    "token:token:",
)


def test_long_texts_take_no_longer_a_letter_than_short_ones():
    assert masked("text", "x" * 20_000) == "x" * 20_000
    slow = {}
    for text in HOSTILE:
        hostile = text * (100_000 // len(text))
        for name in ("text", "archive_command", "primary_conninfo", "a.b", hostile):
            spent = min_of(lambda: masked(name, hostile), 0.1)  # noqa: B023
            if spent > 0.1:
                slow[name[:20], text] = spent
    assert slow == {}


def test_masking_again_changes_nothing():
    for name, secret_values in WITH_SECRETS.items():
        for value in secret_values:
            assert masked(name, masked(name, value)) == masked(name, value)


# What the catalogue knows of each version, and how it got there.


@pytest.mark.parametrize(
    ("major", "count"),
    [
        ("9.2", 224),
        ("9.3", 231),
        ("9.4", 240),
        ("9.5", 248),
        ("9.6", 262),
        ("10", 270),
        ("11", 291),
        ("12", 315),
        ("13", 330),
        ("14", 345),
        ("15", 353),
        ("16", 362),
        ("17", 378),
        ("18", 399),
        ("19", 418),
    ],
)
def test_each_version_has_as_many_settings_as_its_server_printed(major, count):
    assert len(catalogue.names(major)) == count


@pytest.mark.parametrize(
    ("name", "major", "kind", "unit", "minimum", "maximum", "boot"),
    [
        ("shared_buffers", "9.2", "integer", "8kB", 16, 1073741823, "1024"),
        ("max_wal_size", "9.6", "integer", "16MB", 2, 2147483647, "64"),
        ("max_wal_size", "10", "integer", "MB", 2, 2147483647, "1024"),
        ("checkpoint_completion_target", "14", "real", "", 0, 1, "0.9"),
        ("jit", "11", "bool", "", None, None, "off"),
        ("jit", "19", "bool", "", None, None, "off"),
        ("vacuum_cost_delay", "12", "real", "ms", 0, 100, "0"),
        ("DateStyle", "16", "string", "", None, None, "ISO, MDY"),
    ],
)
def test_a_setting_is_as_its_version_printed_it(
    name, major, kind, unit, minimum, maximum, boot
):
    found = setting(name, major)
    assert (found.kind, found.unit, found.minimum, found.maximum, found.boot) == (
        kind,
        unit,
        minimum,
        maximum,
        boot,
    )


def test_an_enum_tells_its_words_and_one_of_them_may_be_empty():
    assert setting("ssl_max_protocol_version", "12").values[:2] == ("", "TLSv1")
    assert "read committed" in setting("default_transaction_isolation", "9.2").values


def test_names_are_found_in_any_case():
    assert setting("datestyle", "9.2").name == "DateStyle"
    assert catalogue.canonical("TIMEZONE") == "TimeZone"


def test_what_a_version_does_not_have_is_none():
    assert setting("checkpoint_segments", "9.5") is None
    assert setting("max_wal_size", "9.4") is None


def test_a_version_that_is_not_recorded_is_refused():
    with pytest.raises(UnknownVersion, match=r"9\.1"):
        setting("work_mem", "9.1")


def test_a_setting_that_went_does_not_come_back():
    for name in catalogue.all_names():
        has = [MAJORS.index(major) for major in catalogue.existence(name)]
        assert has == list(range(has[0], has[-1] + 1)), name


def test_the_file_is_in_the_form_that_recording_writes(tmp_path):
    again = tmp_path / "settings.csv"
    record.write(record.stretches(record.split_by_version(catalogue.read())), again)
    assert again.read_text() == catalogue.FILE.read_text()


def test_recording_a_version_that_changes_nothing_only_lengthens_the_rows():
    known = record.split_by_version(catalogue.read())
    del known["19"]
    rows = len(record.stretches(known))
    known["19"] = dict(known["18"])
    assert len(record.stretches(known)) == rows


def test_recording_reads_what_a_server_prints(tmp_path, monkeypatch):
    dump, file = tmp_path / "9.2.csv", tmp_path / "settings.csv"
    with dump.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(record.COLUMNS.values())
        writer.writerow(
            [
                "work_mem",
                "integer",
                "kB",
                "64",
                "2147483647",
                "",
                "1024",
                "user",
                "M",
                "D",
            ]
        )
        writer.writerow(
            ["server_version", "string", "", "", "", "", "9.2.24", "internal", "P", ""]
        )
    monkeypatch.setattr(record, "FILE", file)
    monkeypatch.setattr(record.write, "__defaults__", (file,))
    record.main(["9.2", str(dump)])
    work_mem, version = sorted(catalogue.read(file), key=lambda row: row.facts["type"])
    assert (work_mem.first, work_mem.last, work_mem.facts["default"]) == (
        "9.2",
        "9.2",
        "1024",
    )
    assert version.facts["default"] == ""


def test_completion_offers_what_begins_with_the_letters_before_what_contains_them():
    names = [each.name for each in complete("wal_", ["9.6"])]
    assert names[0] == "wal_buffers"
    assert names.index("wal_level") < names.index("max_wal_senders")


def test_completion_tells_which_of_the_versions_lack_a_name():
    offered = {each.name: each for each in complete("wal_keep", ["9.4", "18"])}
    assert offered["wal_keep_segments"].missing == ("18",)
    assert offered["wal_keep_size"].missing == ("9.4",)
    assert offered["wal_keep_segments"].versions == "9.2-12"


def test_completion_tells_default_and_range_with_units():
    (offer,) = complete("shared_buffers", ["18"])
    assert (offer.default, offer.allowed) == ("128MB", "128kB … 8TB")


def test_completion_leaves_out_what_cannot_be_set():
    assert complete("block_size", ["18"]) == ()


@pytest.mark.parametrize(
    ("name", "span"),
    [
        ("work_mem", "9.2-"),
        ("checkpoint_segments", "9.2-9.4"),
        ("nonsense", ""),
        ("io_workers", "18"),
    ],
)
def test_the_versions_of_a_name_are_told_as_a_span(name, span):
    assert versions(name) == span


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shared_buffers = 200GB ", {"shared_buffers": "200GB"}),
        ("shared_buffers 200GB # a tenth of the memory", {"shared_buffers": "200GB"}),
        ("shared_buffers=200GB", {"shared_buffers": "200GB"}),
        ("\tautovacuum\t= off", {"autovacuum": "off"}),
        ("datestyle = 'iso, mdy'", {"DateStyle": "iso, mdy"}),
        ("log_line_prefix = '%t [%p]# '", {"log_line_prefix": "%t [%p]# "}),
        ("a.b = 'it''s \\'so\\''", {"a.b": "it's 'so'"}),
        ("a.b = 'tab\\tback\\\\slash\\101'", {"a.b": "tab\tback\\slashA"}),
        ("checkpoint_completion_target = 0.9", {"checkpoint_completion_target": "0.9"}),
        ("autovacuum_work_mem = -1", {"autovacuum_work_mem": "-1"}),
        ("work_mem = '1.5MB'", {"work_mem": "1.5MB"}),
        ("log_timezone = Asia/Tokyo", {"log_timezone": "Asia/Tokyo"}),
        ("pg_stat_statements.max=10", {"pg_stat_statements.max": "10"}),
        ("# shared_buffers = 1GB", {}),
        ("   ", {}),
        ("listen_addresses = ''", {"listen_addresses": ""}),
    ],
)
def test_a_line_is_read_as_postgresql_reads_it(line, expected):
    found = conf_file.read(line)
    assert (dict(found.settings), found.faults) == (expected, ())


@pytest.mark.parametrize(
    "line",
    [
        "work_mem",
        "work_mem =",
        "work_mem = 1 GB",
        "work_mem == 1GB",
        "log_line_prefix = %t",
        "log_line_prefix = 'open",
        "= 1",
        "1 = 1",
        "'work_mem' = 1GB",
        "a.b.c = 1",
        "listen_addresses = *",
    ],
)
def test_what_is_no_setting_is_told_with_its_line(line):
    found = conf_file.read(f"\n{line}\nfsync = on\n")
    (fault,) = found.faults
    assert (fault.line, fault.code, dict(found.settings)) == (
        2,
        "syntax_error",
        {"fsync": "on"},
    )
    assert (fault.message % fault.parameters).startswith("Line 2 ")


def test_the_last_line_of_a_name_wins_and_its_line_is_known():
    found = conf_file.read("work_mem = 1MB\r\nWORK_MEM = 2MB\r\n")
    assert found.settings == {"work_mem": "2MB"}
    assert found.line("Work_Mem") == 2
    assert found.line("fsync") is None
    assert [entry.value for entry in found.entries] == ["1MB", "2MB"]


@pytest.mark.parametrize("word", ["include", "INCLUDE"])
def test_an_include_is_told_and_not_followed(word):
    (fault,) = conf_file.read(f"{word} '/etc/passwd'").faults
    assert fault.code == "include_not_followed"


@pytest.mark.parametrize("word", ["include_if_exists", "include_dir"])
def test_an_include_of_a_file_that_may_be_missing_is_left_out_and_told(word):
    found = conf_file.read(f"work_mem = 8MB\n{word} = 'x.conf'\n")
    assert (dict(found.settings), found.faults) == ({"work_mem": "8MB"}, ())
    assert [(each.line, each.code) for each in found.left_out] == [
        (2, "include_left_out")
    ]


def test_what_an_editor_leaves_is_named():
    found = conf_file.read("\ufeffwork_mem = 8MB\n")
    assert (dict(found.settings), found.faults) == ({"work_mem": "8MB"}, ())
    assert [each.code for each in found.left_out] == ["byte_order_mark"]
    lines = [
        "work_mem\u00a0=\u00a08MB",
        "work_mem = \u30008MB",
        "work_mem = 8MB\rjit = off",
    ]
    codes = [[each.code for each in conf_file.read(line).faults] for line in lines]
    assert codes == [["no_blanks"]] * 3


def test_what_is_written_is_read_again():
    settings = {
        "shared_buffers": "200GB",
        "fsync": "off",
        "log_line_prefix": "%t 'x' \\ [%p] ",
        "search_path": '"$user", public',
        "synchronous_standby_names": "",
        "auto_explain.log_min_duration": "1s",
        "checkpoint_completion_target": "0.9",
        "wal_level": "minimal",
        "DateStyle": "iso, mdy",
        "cluster_name": "two\nlines",
    }
    assert conf_file.read(conf_text.write(settings, "9.5")).settings == settings


def test_settings_are_written_by_the_manuals_chapters():
    text = conf_text.write(
        {"work_mem": "1GB", "x.y": "1", "fsync": "off"}, "16", header=["Mine"]
    )
    assert text == (
        "# Mine\n# PostgreSQL 16\n"
        "\n# Resource Usage / Memory\nwork_mem = 1GB\n"
        "\n# Write-Ahead Log / Settings\nfsync = off\n"
        "\n# Extensions and others\nx.y = '1'\n"
    )


def test_a_title_of_two_lines_cannot_become_a_setting():
    text = conf_text.write({}, "16", header=["Mine\narchive_command = 'rm -rf /'"])
    assert conf_file.read(text).settings == {}


def test_a_null_byte_is_refused():
    with pytest.raises(ValueError, match="null byte"):
        conf_text.write({"cluster_name": "a\0b"}, "16")
