"""Dumps that real pg_dumps have written, and hostile ones: read in parts, told apart, refused."""

import gzip
import io
import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from runs.pair.clusters import Cluster, Installation
from runs.statements import needs
from runs.statements.data_script import DataRefused
from runs.statements.dumps import DumpReader
from runs.statements.tokens import NotSql, one
from tests.unit.postgresql_settings import servers

MOST_BYTES = 50_000_000
TABLES = """
CREATE ROLE clerk;
CREATE EXTENSION IF NOT EXISTS plpgsql;
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id integer PRIMARY KEY, note text, kind integer);
INSERT INTO shop.orders SELECT n, 'row ' || n || repeat('x', 90), n % 7
FROM generate_series(1, 20000) AS n;
CREATE TABLE shop.days (day date, amount numeric) PARTITION BY RANGE (day);
CREATE TABLE shop.days_2026 PARTITION OF shop.days
    FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
INSERT INTO shop.days VALUES ('2026-05-05', 7);
CREATE VIEW shop.kinds AS SELECT kind, count(*) FROM shop.orders GROUP BY kind;
CREATE MATERIALIZED VIEW shop.many AS SELECT * FROM shop.kinds;
CREATE FUNCTION shop.twice(language text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN RETURN language || ';' || language; END $$;
CREATE INDEX ON shop.orders (kind);
ALTER TABLE shop.orders OWNER TO clerk;
GRANT SELECT ON shop.orders TO PUBLIC;
COMMENT ON TABLE shop.orders IS 'what is sold';
SELECT lo_from_bytea(0, decode(repeat('ab', 50000), 'hex'));
"""
FORMS = {
    "custom": ("-Fc",),
    "not packed": ("-Fc", "-Z0"),
    "tar": ("-Ft",),
    "plain": ("-Fp",),
    "inserts": ("-Fp", "--inserts"),
}
WRITERS = [
    server
    for server in servers.installed()
    if (server.bindir / "pg_dump").exists() and (server.bindir / "psql").exists()
]


@pytest.fixture(scope="module", params=WRITERS, ids=str)
def written(request, test_folder):
    """The bin folder of a version, and its dumps of one database by form."""
    server = request.param
    folder = Path(tempfile.mkdtemp(dir=test_folder))
    folder.chmod(0o711)
    cluster = Cluster(Installation(server.version, server.bindir), folder / "cluster")
    cluster.make({"fsync": "off"})
    try:
        cluster.start()

        def run(program, *arguments, text=""):
            return subprocess.run(
                [server.bindir / program, *arguments],
                input=text.encode(),
                env=cluster.environment(),
                check=True,
                capture_output=True,
            ).stdout

        run("psql", "-qX", "-v", "ON_ERROR_STOP=1", text=TABLES)
        dumps = {name: run("pg_dump", *options) for name, options in FORMS.items()}
        with suppress(subprocess.CalledProcessError):
            dumps["lz4"] = run("pg_dump", "-Fc", "-Z", "lz4")
    finally:
        cluster.remove()
        shutil.rmtree(folder)
    return server.bindir, dumps


def read(content, *, part=1_000_000, most=MOST_BYTES):
    """What a dump has that comes in parts, and the script for psql that it became."""
    reader = DumpReader(most)
    scripts = []
    dump = None
    for begin in range(0, max(len(content), 1), part):
        rest, is_done = content[begin : begin + part], False
        while not is_done:
            answer = reader.take(rest, is_last=begin + part >= len(content))
            scripts.append(answer.script)
            rest, is_done = b"", answer.is_done
            dump = answer.dump or dump
    return dump, "".join(scripts)


def listed(bindir, content):
    """The numbers of what pg_restore itself lists, by kind."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        text = subprocess.run(
            [bindir / "pg_restore", "-l", file.name],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    lines = re.findall(r"^(\d+); \d+ \d+ ([A-Z ]*[A-Z]) ", text, re.MULTILINE)
    return {int(number): kind for number, kind in lines}


@pytest.mark.parametrize("form", ["custom", "not packed", "tar", "lz4"])
@pytest.mark.parametrize("part", [1000, 4_000_000])
def test_an_archive_is_listed_as_pg_restore_lists_it(written, form, part):
    bindir, dumps = written
    if form not in dumps:
        pytest.skip("this version does not pack so")
    dump, script = read(dumps[form], part=part)
    assert script == ""
    expected = listed(bindir, dumps[form])
    left_out = {
        number
        for number, kind in expected.items()
        if kind.startswith(("ACL", "COMMENT", "EXTENSION"))
    }
    numbers = {int(line.rstrip(";")) for line in dump.list_text.split()}
    assert numbers == expected.keys() - left_out
    assert (dump.tables, dump.extensions) == (2, ())
    assert set(dump.roles) == {"clerk", "postgres"}
    assert [(need.version, need.where) for need in dump.needs] == [
        (10, "table shop.days")
    ]


@pytest.mark.parametrize("form", ["plain", "inserts"])
def test_a_plain_dump_becomes_one_script_however_it_comes(written, form):
    _bindir, dumps = written
    whole = read(dumps[form], part=len(dumps[form]))
    assert read(dumps[form], part=9973) == whole
    assert read(gzip.compress(dumps[form]), part=9973) == whole
    dump, script = whole
    assert dump.tables == (2 if form == "plain" else 0)
    assert {"clerk", "postgres"} == set(dump.roles)
    if form == "plain":
        rows = [line for line in script.split("\n") if line.endswith("x\t3")]
        assert len(rows) == (20_000 - 3) // 7 + 1
    assert "restrict" not in script


@pytest.mark.parametrize("form", ["custom", "not packed", "tar", "plain"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_dump_that_is_cut_is_refused(written, form, share):
    _bindir, dumps = written
    content = dumps[form]
    with pytest.raises((DataRefused, NotSql)) as raised:
        read(content[: int(len(content) * share)])
    assert raised.value.code in {"cut", "rows_not_ended", "not_sql"}


def test_a_dump_that_unpacks_to_more_than_it_may_is_refused(written):
    _bindir, dumps = written
    for content in (dumps["custom"], dumps["tar"], dumps["plain"]):
        with pytest.raises(DataRefused) as raised:
            read(content, most=500_000)
        assert raised.value.code == "too_large"


def test_a_dump_whose_bytes_are_changed_is_refused_or_the_same(written):
    """Nothing else than a refusal comes of it, however the list of contents is broken."""
    _bindir, dumps = written
    begin = dumps["not packed"]
    for place in range(5, 4000, 37):
        broken = bytearray(begin[:400_000])
        broken[place] ^= 0xFF
        with pytest.raises(DataRefused):
            read(bytes(broken))


def packed(parts):
    """What gzip makes of parts, without holding them."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def tar_of(name):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return file.getvalue()


TEXT = b"CREATE TABLE t (a integer);\n"
HOSTILE = {
    "zeros": (b"\0" * 1_000_000, "not_text"),
    "10 GB of zeros, packed": (packed([b"\0" * 10_000_000] * 3), "not_text"),
    "100 MB of spaces, packed": (
        packed([b" " * 10_000_000] * 10),
        "statement_too_long",
    ),
    "rows without an end, packed": (
        packed([b"COPY t FROM stdin;\n", *[b"1\n" * 5_000_000] * 10]),
        "too_large",
    ),
    "a statement without an end": (
        b"SELECT '" + b"x" * 20_000_000,
        "statement_too_long",
    ),
    "a command of psql": (TEXT + b"\\! touch /tmp/never\n", "psql_command"),
    "a command of psql, packed": (gzip.compress(TEXT + b"\\! sh\n"), "psql_command"),
    "an extension": (b"CREATE EXTENSION dblink;", "extension"),
    "a program": (b"COPY t FROM PROGRAM 'sh';", "copy_from_file"),
    "bytes of no encoding": (TEXT + b"SELECT '\xff\xfe';", "not_text"),
    "an archive's name alone": (b"PGDMP", "cut"),
    "an archive of tomorrow": (b"PGDMP\x01\x63\x00" + b"\0" * 600, "archive_version"),
    "an archive of yesterday": (b"PGDMP\x01\x05\x00" + b"\0" * 600, "archive_version"),
    "an archive of nothing": (
        b"PGDMP\x01\x0e\x00\x04\x08\x01" + b"\xff" * 600,
        "damaged",
    ),
    "another tar": (tar_of("etc/passwd"), "not_a_dump"),
    "a folder in tar": (tar_of("dump/toc.dat"), "not_a_dump"),
    "a tar of a false name": (tar_of("toc.dat"), "damaged"),
    "an archive that is packed once more": (
        gzip.compress(b"PGDMP\x01\x0e"),
        "packed_archive",
    ),
    "gzip that is cut": (gzip.compress(TEXT * 1000)[:-9], "cut"),
    "gzip that is damaged": (b"\x1f\x8b" + b"\x07" * 900, "damaged"),
    "zstd": (b"\x28\xb5\x2f\xfd" + b"\0" * 900, "packed"),
    "ZIP": (b"PK\x03\x04" + b"\0" * 900, "packed"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 900, "not_text"),
    "nothing": (b"", "no_data"),
}


@pytest.mark.parametrize(("content", "code"), HOSTILE.values(), ids=list(HOSTILE))
def test_what_is_no_dump_is_refused(content, code):
    with pytest.raises((DataRefused, NotSql)) as raised:
        read(content)
    assert raised.value.code == code


def archive_with(dump, old, new):
    """A dump that is not packed, in which a text is another one of the same length."""
    assert len(old) == len(new)
    assert old in dump
    return dump.replace(old, new, 1)


def test_what_an_archive_hides_in_its_list_is_refused(written):
    _bindir, dumps = written
    dump = dumps["not packed"]
    copy = b"COPY shop.orders (id, note, kind) FROM stdin;"
    program = b"COPY shop.orders FROM PROGRAM 'touch /tmp/n';"
    with pytest.raises(DataRefused) as raised:
        read(archive_with(dump, copy, program))
    assert raised.value.code == "copy_from_file"
    with pytest.raises(DataRefused) as raised:
        read(archive_with(dump, b"LANGUAGE plpgsql", b"LANGUAGE plperlu"))
    assert raised.value.code == "language"


def test_a_dump_is_read_in_the_encoding_that_it_names():
    text = "SET client_encoding = 'LATIN1';\nCREATE TABLE t (\xe9t\xe9 text);\n"
    _dump, script = read(text.encode("latin-1"))
    assert "\xe9t\xe9".encode().hex() in script


# A statement, and the first version that takes it; what it needs is made before.
CONSTRUCTS = {
    "CREATE TABLE a (b integer) PARTITION BY RANGE (b)": 10,
    "CREATE TABLE a (b integer GENERATED BY DEFAULT AS IDENTITY)": 10,
    "CREATE TABLE a (b integer) PARTITION BY HASH (b)": 11,
    "CREATE PROCEDURE p() LANGUAGE sql AS $$ SELECT 1 $$": 11,
    "CREATE INDEX ON base (b) INCLUDE (c)": 11,
    "CREATE TABLE a (b integer, c integer GENERATED ALWAYS AS (b * 2) STORED)": 12,
    "CREATE FUNCTION f() RETURNS integer LANGUAGE sql BEGIN ATOMIC SELECT 1; END": 14,
    "ALTER TABLE base ALTER COLUMN d SET COMPRESSION pglz": 14,
    "CREATE UNIQUE INDEX ON base (b) NULLS NOT DISTINCT": 15,
    "CREATE VIEW v AS SELECT * FROM JSON_TABLE ('[1]', '$[*]' COLUMNS (a integer PATH '$'))": 17,
    "CREATE TABLE a (b integer, c integer GENERATED ALWAYS AS (b * 2) VIRTUAL)": 18,
    "CREATE TABLE a (b uuid DEFAULT uuidv7() NOT NULL)": 18,
    "CREATE TABLE a (b int4range, c int4range, UNIQUE (c, b WITHOUT OVERLAPS))": 18,
    "ALTER TABLE base ADD CHECK (b > 0) NOT ENFORCED": 18,
}


@pytest.mark.parametrize("server", servers.started_often(), ids=str)
def test_what_a_statement_needs_is_what_servers_say(server, test_folder):
    folder = Path(tempfile.mkdtemp(dir=test_folder))
    folder.chmod(0o711)
    cluster = Cluster(Installation(server.version, server.bindir), folder / "cluster")
    cluster.make({"fsync": "off"})
    psql = next(writer.bindir / "psql" for writer in reversed(WRITERS))
    try:
        cluster.start()
        wrong = []
        for text, version in CONSTRUCTS.items():
            base = "CREATE TABLE base (b integer, c integer, d text);"
            done = subprocess.run(
                [psql, "-qX", "-v", "ON_ERROR_STOP=1"],
                input=f"BEGIN; {base} {text};",
                env=cluster.environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            is_taken = done.returncode == 0
            if is_taken != (float(server.major) >= version):
                wrong.append((text, is_taken, done.stderr[-200:]))
            if max(need.version for need in needs.needs(one(text))) != version:
                wrong.append((text, "named otherwise"))
    finally:
        cluster.remove()
        shutil.rmtree(folder)
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE a (partition integer, uuidv7 text, stored boolean)",
        "CREATE TABLE a (b text DEFAULT 'x) PARTITION BY RANGE (b)')",
        "CREATE INDEX include ON t (a)",
        "SELECT uuidv7()",
    ],
)
def test_words_alone_need_nothing(text):
    assert list(needs.needs(one(text))) == []
