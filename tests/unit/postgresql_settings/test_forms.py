"""Each form, written by its own writer with awkward values, gives them back whole."""
# ruff: noqa: E501, ISC004 - samples are wide.

import csv
import io
import json
import shlex

import pytest
import yaml

from runs.postgresql_settings import conf_file
from runs.postgresql_settings.conf_text import quoted
from runs.postgresql_settings.forms import FORMS

AWKWARD = {
    "a prefix of lines": "%m [%p] %u@%d ",
    "a list": "shop, public",
    "a list without blanks": "pg_stat_statements,auto_explain",
    "bars": "%m|%u|%d",
    "quotes": 'it\'s "here"',
    "equals and colons": "a=b: c",
    "a comment": "x # y",
    "a semicolon": "a; b",
    "a command": 'test ! -f /arc/%f && cp "%p" /arc/%f',
    "backslashes": "C:\\data\\%f",
    "brackets": "[a] {b} (c)",
    "Japanese": "日本 語、値",
    "an option": "-c b=c",
    "a dollar": "$PGDATA/x",
    "nothing": "",
    "a line break": "a\nb",
    "a number of words": "64 MB extra",
}
NAMES = ("log_line_prefix", "archive_command", "search_path")
BESIDE = {"work_mem": "8MB", "jit": "off"}


def as_docker(settings):
    options = [
        part for name, value in settings.items() for part in ("-c", f"{name}={value}")
    ]
    return "docker run -d " + shlex.join(["postgres:18", *options])


def as_docker_quoting_values(settings):
    options = [f"-c {name}={shlex.quote(value)}" for name, value in settings.items()]
    return "docker run -d postgres:18 " + " ".join(options)


def as_lines_of_docker(settings):
    options = [
        f"  -c {shlex.quote(f'{name}={value}')}" for name, value in settings.items()
    ]
    return "docker run -d postgres:18 \\\n" + " \\\n".join(options) + "\n"


def as_strings(settings):
    words = [
        part for name, value in settings.items() for part in ("-c", f"{name}={value}")
    ]
    lines = "".join(f"    {json.dumps(word, ensure_ascii=False)},\n" for word in words)
    return f"Cmd: []string{{\n{lines}}},\n"


def as_dockerfile(settings):
    options = [
        part for name, value in settings.items() for part in ("-c", f"{name}={value}")
    ]
    words = json.dumps(["postgres", *options], ensure_ascii=False)
    return f"FROM postgres:18\nCMD {words}\n"


def as_pgoptions(settings):
    options = " ".join(
        f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items()
    )
    return f"export PGOPTIONS={shlex.quote(options)}\npsql shop\n"


def as_pg_ctl(settings):
    options = " ".join(
        f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items()
    )
    return f"pg_ctl -D data -o {shlex.quote(options)} start"


def as_composition(settings):
    words = [
        part for name, value in settings.items() for part in ("-c", f"{name}={value}")
    ]
    service = {"image": "postgres:18", "command": ["postgres", *words]}
    return yaml.safe_dump({"services": {"db": service}}, allow_unicode=True)


def as_composition_in_one(settings):
    words = [
        part for name, value in settings.items() for part in ("-c", f"{name}={value}")
    ]
    service = {"image": "postgres:18", "command": "postgres " + shlex.join(words)}
    return yaml.safe_dump({"services": {"db": service}}, allow_unicode=True)


def as_flow_list(settings):
    words = [
        part for name, value in settings.items() for part in ("-c", f"{name}={value}")
    ]
    return yaml.safe_dump({"command": ["postgres", *words]}, default_flow_style=True)


def as_cluster(settings):
    cluster = {"instances": 3, "postgresql": {"parameters": settings}}
    return yaml.safe_dump({"kind": "Cluster", "spec": cluster}, allow_unicode=True)


def as_block_scalars(settings):
    lines = ["postgresql:", "  parameters:"]
    for name, value in settings.items():
        lines += [f"    {name}: |-", *(f"      {line}" for line in value.split("\n"))]
    return "\n".join(lines) + "\n"


def as_anchors(settings):
    common = yaml.safe_dump({"common": settings}, allow_unicode=True)
    return (
        common.replace("common:", "common: &a", 1)
        + "postgresql:\n  parameters:\n    <<: *a\n"
    )


def as_config_map(settings):
    content = "".join(f"{name} = {quoted(value)}\n" for name, value in settings.items())
    data = {"pg_hba.conf": "local all all trust\n", "postgresql.conf": content}
    return yaml.safe_dump({"kind": "ConfigMap", "data": data}, allow_unicode=True)


def as_script(settings):
    lines = [
        f"ALTER SYSTEM SET {name} = {sql(value)};" for name, value in settings.items()
    ]
    return "\n".join(["BEGIN;", "COMMIT;", *lines, "SELECT pg_reload_conf();", ""])


def as_session(settings):
    lines = [
        f"postgres=# ALTER SYSTEM SET {name} TO {sql(value)};\nALTER SYSTEM"
        for name, value in settings.items()
    ]
    return "\n".join(lines) + "\n"


def as_psql_command(settings):
    statements = [
        f"ALTER SYSTEM SET {name} = {sql(value)}" for name, value in settings.items()
    ]
    return "\n".join(f"psql -U postgres -c {shlex.quote(text)}" for text in statements)


def as_set_config(settings):
    return "".join(
        f"SELECT set_config('{name}', {sql(value)}, false);\n"
        for name, value in settings.items()
    )


def as_json(settings):
    return json.dumps(settings)


def as_objects(settings):
    rows = [
        {"ParameterName": name, "ParameterValue": value}
        for name, value in settings.items()
    ]
    return json.dumps({"Parameters": rows}, indent=1)


def as_csv(settings):
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["name", "setting", "source"])
    rows.writerows(
        [name, value, "configuration file"] for name, value in settings.items()
    )
    return file.getvalue()


def as_psql_table(settings):
    """As psql aligns it: with its rule line."""
    rows = [("name", "setting", "source")]
    rows += [(name, value, "configuration file") for name, value in settings.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        " "
        + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    rule = "-" + "-+-".join("-" * width for width in widths) + "-"
    return "\n".join([lines[0], rule, *lines[1:], f"({len(settings)} rows)", ""])


def as_variables(settings):
    return "".join(
        f"POSTGRESQL_{name.upper()}={value}\n" for name, value in settings.items()
    )


def as_exports(settings):
    return "".join(
        f"export POSTGRESQL_{name.upper()}={shlex.quote(value)}\n"
        for name, value in settings.items()
    )


def as_echo(settings):
    return "".join(
        f"echo {shlex.quote(f'{name} = {quoted(value)}')} >> $PGDATA/postgresql.conf\n"
        for name, value in settings.items()
    )


def as_one_line(settings):
    return "; ".join(f"{name} = {quoted(value)}" for name, value in settings.items())


def as_conf(settings):
    return "".join(f"{name} = {quoted(value)}\n" for name, value in settings.items())


def sql(value):
    return "'" + value.replace("'", "''") + "'"


# What a form cannot hold, as its writer would not write it like this.
BREAK, EMPTY, END = "a line break", "nothing", "a prefix of lines"
WRITERS = {
    "conf": (as_conf, set()),
    "one line": (as_one_line, set()),
    "docker": (as_docker, set()),
    "docker, values in quotes": (as_docker_quoting_values, set()),
    "docker, in lines": (as_lines_of_docker, set()),
    "Dockerfile": (as_dockerfile, set()),
    "strings": (as_strings, set()),
    "PGOPTIONS": (as_pgoptions, set()),
    "pg_ctl": (as_pg_ctl, set()),
    "composition": (as_composition, set()),
    "composition, in one": (as_composition_in_one, set()),
    "flow list": (as_flow_list, set()),
    "cluster": (as_cluster, set()),
    "block scalars": (as_block_scalars, {EMPTY, END}),
    "anchors": (as_anchors, set()),
    "ConfigMap": (as_config_map, set()),
    "script": (as_script, set()),
    "session": (as_session, {BREAK}),
    "psql -c": (as_psql_command, set()),
    "set_config": (as_set_config, set()),
    "JSON": (as_json, set()),
    "objects": (as_objects, set()),
    "CSV": (as_csv, set()),
    "psql's table": (as_psql_table, {BREAK, END}),
    "variables": (as_variables, {BREAK, END, "quotes"}),
    "exports": (as_exports, {BREAK}),
    "echo": (as_echo, set()),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_form_writes_is_read_whole(writer):
    write, cannot_hold = WRITERS[writer]
    wrong = {}
    for title, value in AWKWARD.items():
        if title in cannot_hold:
            continue
        for name in NAMES:
            settings = {**BESIDE, name: value}
            conf = conf_file.read(write(settings))
            if dict(conf.settings) != settings or conf.faults:
                wrong[title, name] = dict(conf.settings), conf.faults
    assert wrong == {}


def test_every_form_has_a_writer_that_is_read_as_it():
    settings = {**BESIDE, "log_line_prefix": "%m [%p]"}
    read_as = {
        str(conf_file.read(write(settings)).form) for write, _cannot in WRITERS.values()
    }
    titles = {
        str(form.title) for form in FORMS if form.name not in {"pairs", "show", "named"}
    }
    assert titles <= read_as


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "spec:\n  postgresql:\n    parameters:\n      jit: 'off'\n"
            "    shared_preload_libraries: [pg_cron, pgaudit]\n",
            {"jit": "off", "shared_preload_libraries": "pg_cron,pgaudit"},
        ),
        (
            "parameters:\n  shared_preload_libraries: >-\n    pg_cron,\n    pgaudit\n  jit: off\n",
            {"shared_preload_libraries": "pg_cron, pgaudit", "jit": "off"},
        ),
        (
            '{"spec": {"postgresql.conf": {"jit": "off"}},'
            ' "status": {"defaultParameters": {"jit": "on", "fsync": "on"}}}',
            {"jit": "off"},
        ),
        (
            "name,setting,source\njit,off,configuration file\nwork_mem,64,session\n"
            "application_name,psql,client\n",
            {"jit": "off"},
        ),
        ("name,setting,applied\njit,off,t\nwork_mem,4MB,f\n", {"jit": "off"}),
        ('{"jit": "off", "server_version": "16.4", "block_size": "8192"}', {"jit": "off"}),
        ("primary:\n  sharedBuffers: 3GB\n  workMem: 8MB\n", {"shared_buffers": "3GB", "work_mem": "8MB"}),
        ("avn service update a -c pg.jit=off -c pg.work_mem=24", {"jit": "off", "work_mem": "24MB"}),
        (
            'services.postgresql.settings = {\n  shared_preload_libraries = [ "a" "b" ];\n  jit = "off";\n};\n',
            {"shared_preload_libraries": "a,b", "jit": "off"},
        ),
        (
            "const a = {\n  jit: 'off',\n  work_mem: '8MB',\n  'pg_stat_statements.track': 'top'\n}\nf({ a })\n",
            {"jit": "off", "work_mem": "8MB", "pg_stat_statements.track": "top"},
        ),
        (
            'docker("run", IMAGE,\n  "-c", "jit=off", "-c","work_mem=8MB", timeout=130)\n',
            {"jit": "off", "work_mem": "8MB"},
        ),
        (
            "Seq.of(\"jit='off'\",\n  \"pg_stat_statements.max='10'\")\n",
            {"jit": "off", "pg_stat_statements.max": "10"},
        ),
        (
            "postgresql:\n  parameters:\n    jit: 'off'\n  x: 1\nplugins:\n- parameters:\n    barman: minio\n",
            {"jit": "off"},
        ),
        (
            '#!/bin/bash\nset -e\npsql -U postgres -c "ALTER SYSTEM SET jit=off;"\n'
            "psql -c \"CREATE USER o; \\\n ALTER USER o WITH PASSWORD 'o';\"\n",
            {"jit": "off"},
        ),
        ("kubectl apply -f - <<EOF\nparameters:\n  jit: 'off'\nEOF\n", {"jit": "off"}),
        ('settings = {\n  jit = lib.mkForce "off";\n  work_mem = "8MB";\n};\n', {"jit": "off", "work_mem": "8MB"}),
        ("PATRONI_POSTGRESQL_PARAMETERS_WORK_MEM=10MB\n", {"work_mem": "10MB"}),
        (
            "Update-AzPostgreSqlFlexibleServerConfiguration -Name work_mem -Value 24576\n"
            "Update-AzPostgreSqlFlexibleServerConfiguration -Name jit -Value off\n",
            {"work_mem": "24576", "jit": "off"},
        ),
        (
            'parameters: [\n  { name: "jit", value: "off" },\n'
            '  { name: "work_mem", value: "8MB", applyMethod: "pending-reboot" },\n];\n',
            {"jit": "off", "work_mem": "8MB"},
        ),
        ('proc(\n  options="-c jit=off -c work_mem=8MB",\n)\n', {"jit": "off", "work_mem": "8MB"}),
        (
            "POSTGRESQL_WORK_MEM=8MB\nPOSTGRESQL_EXTRA_FLAGS=-c jit=off\nPOSTGRES_DB=-c\n",
            {"work_mem": "8MB", "jit": "off"},
        ),
        (
            "- postgresql_set:\n    name: jit\n    value: 'off'\n- postgresql_set: name=work_mem value=8MB\n",
            {"jit": "off", "work_mem": "8MB"},
        ),
        (
            "- name: POSTGRESQL_WORK_MEM\n  value: 8MB\n- name: POSTGRESQL_USER\n  value: u\n",
            {"work_mem": "8MB"},
        ),
        ('{"config": {"work_mem": 8, "jit": "off", "pgbouncer": {}}}', {"work_mem": "8MB", "jit": "off"}),
        ('[{"op": "replace", "path": "/spec/postgresql/parameters/jit", "value": "off"}]', {"jit": "off"}),
        ("kubectl patch c x -p '{\"spec\":{\"parameters\":{\"jit\":\"off\"}}}'", {"jit": "off"}),
        ("fly postgres config update --work-mem 64 --wal-level logical", {"work_mem": "64", "wal_level": "logical"}),
        (
            "yb-tserver --ysql_pg_conf_csv=work_mem=8MB,\"log_line_prefix='%m [%p] '\"",
            {"work_mem": "8MB", "log_line_prefix": "%m [%p] "},
        ),
        (
            'pg_ctl -D d -o "-N 300 -B1000 -F -fs -c jit=off" start',
            {
                "max_connections": "300",
                "shared_buffers": "1000",
                "fsync": "off",
                "enable_seqscan": "off",
                "jit": "off",
            },
        ),
        # -p and -h of other programs are no settings.
        ("psql -h db -p 5432 -U postgres -c 'ALTER SYSTEM SET jit = off'", {"jit": "off"}),
    ],
)  # fmt: skip
def test_only_what_is_in_force_is_read(text, expected):
    conf = conf_file.read(text)
    assert (dict(conf.settings), conf.faults) == (expected, ())


@pytest.mark.parametrize(
    "text",
    [
        "name|setting|source\nlog_line_prefix|%m|%u|%d |configuration file\njit|off|configuration file\n",
        "ALTER SYSTEM SET work_mem = 64 MB 'x';\n",
        "config = {\n  search_path => shop, public\n  jit => 'off'\n}\n",
        "gcloud sql instances patch i --database-flags=jit=off,nothing",
        'x:\n- {name: jit, value: off}\n- name: work_mem\n  value: 8MB" x: [\n',
    ],
)
def test_a_rest_is_a_fault(text):
    assert conf_file.read(text).faults


def test_an_alias_bomb_is_answered():
    text = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        text += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    conf = conf_file.read(text + "parameters:\n  jit: off\n")
    assert conf.faults or dict(conf.settings) == {"jit": "off"}
