"""Settings as people have them elsewhere: what each form sets."""
# ruff: noqa: E501 - samples are wide.

import json

import pytest

from runs.postgresql_settings import conf_file, values
from runs.postgresql_settings.catalogue import setting
from tests.patterns import min_of

WANTED = {
    "shared_buffers": "2GB",
    "work_mem": "8MB",
    "random_page_cost": "1.1",
    "jit": "off",
}
FORMS = {
    "postgresql.conf": "include = 'a.conf'\nshared_buffers = 2GB # memory\nwork_mem = 4MB\n"
    "work_mem = '8MB'\nrandom_page_cost 1.1\njit = off",
    "ALTER SYSTEM": "-- DB Version: 18\nALTER SYSTEM SET\n shared_buffers = '2GB';\n"
    "ALTER SYSTEM SET work_mem TO '8MB';\nalter system set random_page_cost = 1.1;\n"
    "ALTER SYSTEM SET jit = 'off';\nSELECT pg_reload_conf();",
    "Terraform, a map": "parameters = {\n" + "".join(f'  {name} = "{value}"\n' for name, value in WANTED.items()) + "}\n",
    "rows without a heading": "".join(f" {name:20} | {value}\n" for name, value in WANTED.items()) + "(4 rows)\n",
    "CSV without a heading": "".join(f"{name},{value}\n" for name, value in WANTED.items()),
    "a table under another heading": "| Setting | Value |\n|---|---|\n" + "".join(f"| `{name}` | `{value}` |\n" for name, value in WANTED.items()),
    "psql in unicode": "      name       │ setting \n─────────────────┼─────────\n" + "".join(f" {name:15} │ {value}\n" for name, value in WANTED.items()),
    "psql without a border": f"{'name':^17} {'setting':^12}\n{'-' * 17} {'-' * 12}\n" + "".join(
        f"{name:17} {value}\n" for name, value in WANTED.items()) + "(4 rows)\n",
    "aws, text": "".join(f"PARAMETERS\timmediate\tdynamic\tinteger\t(kB) Sets a, b\tTrue\t{name}\t{value}\tuser\n" for name, value in WANTED.items()),
    "aws, YAML": "Parameters:\n" + "".join(f"- ApplyMethod: immediate\n  ParameterName: {name}\n  ParameterValue: '{value}'\n" for name, value in WANTED.items()),
    "Ansible's arguments": "".join(f"ansible db -m postgresql_set -a 'name={name} value={value}'\n" for name, value in WANTED.items()),
    "NixOS": 'services.postgresql = {\n  settings = {\n    shared_buffers = "2GB";\n    work_mem = "8MB";\n'
    '    random_page_cost = 1.1;\n    jit = "off";\n  };\n};\n',
    "TOML": "[postgres.parameters]\n" + "".join(f'{name} = "{value}"\n' for name, value in WANTED.items()),
    "Ruby": "".join(f"postgresql['{name}'] = \"{value}\"\n" for name, value in WANTED.items()),
    "Puppet": "".join(f"config_entry {{ '{name}': value => '{value}' }}\n" for name, value in WANTED.items()),
    "Python": "settings = {\n" + "".join(f'    "{name}": "{value}",\n' for name, value in WANTED.items()) + "}\n",
    "a shell": "".join(f'echo "{name} = {value}" >> $PGDATA/postgresql.conf\n' for name, value in WANTED.items()),
    "a list": "".join(f"- {name}: {value}\n" for name, value in WANTED.items()),
    "grep": "".join(f"/etc/postgresql/16/main/postgresql.conf:{name} = {value}\n" for name, value in WANTED.items()),
    "a role of Ansible": "".join(f"postgresql_{name}: {value}\n" for name, value in WANTED.items()) + "x y\n",
    "items of Ansible": "l:\n" + "".join(f'  - {{ option: {name}, value: "{value}" }}\n' for name, value in WANTED.items()),
    "psql": "postgres=# ALTER SYSTEM SET shared_buffers = '2GB';\npostgres=# SET work_mem = '8MB';\n"
    "postgres=# set random_page_cost to 1.1;\npostgres=# SET SESSION jit = off;",
    "a session of psql": '$ psql\npsql (18.0)\nType "help" for help.\n\n' + "".join(
        f"psql# ALTER SYSTEM SET {name} = '{value}';\nALTER SYSTEM\n" for name, value in WANTED.items()
    ) + "postgres=# SELECT pg_reload_conf();\n pg_reload_conf \n----------------\n t\n(1 row)\n\npostgres=# \\q\n",
    "aws, JSON": "aws rds modify-db-parameter-group \\\n  --db-parameter-group-name p \\\n  --parameters '[\n" + ",\n".join(
        f'    {{"ParameterName": "{name}", "ParameterValue": "{value}", "ApplyMethod": "immediate"}}' for name, value in WANTED.items()
    ) + "\n  ]'\n",
    "aws": "aws rds modify-db-parameter-group --parameters " + " ".join(
        f'"ParameterName={name},ParameterValue={value},ApplyMethod=immediate"' for name, value in WANTED.items()
    ),
    "az, short": "".join(f"az postgres flexible-server parameter set -g r -n {name} -v {value}\n" for name, value in WANTED.items()),
    "JSON, a line each": "".join(json.dumps({"name": name, "setting": value}) + "\n" for name, value in WANTED.items()),
    "one line, semicolons": "; ".join(f"{name} = {value}" for name, value in WANTED.items()) + "\n",
    "one line, commas": ", ".join(f"{name}={value}" for name, value in WANTED.items()),
    "lines of several": "shared_buffers: 2GB, work_mem: 8MB;\nrandom_page_cost='1.1'; jit=off;\n",
    "pg_createcluster": "sudo pg_createcluster 16 main " + " ".join(f"-o {name}={value}" for name, value in WANTED.items()) + " -- -k\n",
    "an address of a connection": "postgresql://a:b@db:5432/c?connect_timeout=9&options=" + "%20".join(
        f"-c%20{name}%3D{value}" for name, value in WANTED.items()) + "&sslmode=require",
    "properties of Spring": "spring.datasource.hikari.data-source-properties.options=" + " ".join(
        f"-c {name}={value}" for name, value in WANTED.items()) + "\nspring.datasource.hikari.maximum-pool-size=10\n",
    "pairs of Rust": "let settings = vec![" + ", ".join(f'("{name}", "{value}")' for name, value in WANTED.items()) + "];\n",
    "a list of code": "".join(f"- `{name}` = `{value}`\n" for name, value in WANTED.items()),
    "another list": "".join(f"* {name} = {value}\n" for name, value in WANTED.items()),
    "before and after": "| Parameter | Before | After |\n|---|---|---|\n" + "".join(f"| {name} | 1 | {value} |\n" for name, value in WANTED.items()),
    "a string of Perl": "$node->append_conf('postgresql.conf', qq{\n" + "".join(f"{name} = {value}\n" for name, value in WANTED.items()) + "});\n",
    "a string of Python": 'CONF = """\n' + "".join(f"{name} = {value}\n" for name, value in WANTED.items()) + '"""\n',
    "a file and a restart": "cat >>/etc/postgresql.conf <<EOF\n" + "".join(
        f"{name} = {value}\n" for name, value in WANTED.items()) + "EOF\nsudo systemctl restart postgresql@16-main\n",
    "a hash of Ruby": "settings = {\n" + "".join(f"  '{name}' => '{value}',\n" for name, value in WANTED.items()) + "}\n",
    "calls of Java": "".join(f'.setServerConfig("{name}", "{value}")' for name, value in WANTED.items()),
    "a table of Jira": "||name||setting||\n" + "".join(f"|{name}|{value}|\n" for name, value in WANTED.items()),
    "psql's HTML": "<table>\n<tr>\n<th>name</th>\n<th>setting</th>\n</tr>\n" + "".join(
        f"<tr>\n  <td>{name}</td>\n  <td>{value}</td>\n</tr>\n" for name, value in WANTED.items()) + "</table>\n<p>(4 rows)</p>\n",
    "an issue": "My settings:\n\n```\n" + "".join(f"{name} = {value}\n" for name, value in WANTED.items()) + "```\nWhy?\n",
    "files in a shell": "root@db:~# head /etc/pg/conf.d/*.conf\n==> /etc/pg/conf.d/a.conf <==\nshared_buffers = 2GB\nwork_mem = 8MB\n"
    "==> /etc/pg/conf.d/b.conf <==\nrandom_page_cost = 1.1\njit = off\nroot@db:~# \n",
    "a here-document": "cat >> $PGDATA/postgresql.conf <<'EOF'\n" + "".join(f"{name} = {value}\n" for name, value in WANTED.items()) + "EOF\n",
    "gcloud, marks of its own": "gcloud sql instances patch i --database-flags=^:^" + ":".join(f"{name}={value}" for name, value in WANTED.items()),
    "set_config": "".join(f"SELECT set_config('{name}', '{value}', false);\n" for name, value in WANTED.items()),
    "a log": "".join(f'2026-03-04 05:06:07 UTC [1] LOG:  parameter "{name}" changed to "{value}"\n' for name, value in WANTED.items()),
    "Pulumi": "".join(f'    ParameterArgs(name="{name}", value="{value}"),\n' for name, value in WANTED.items()),
    "XML": "".join(f'<parameter name="{name}" value="{value}"/>\n' for name, value in WANTED.items()),
    "a table of HTML": "<table>" + "".join(f"<tr><td>{name}</td>\n<td>{value}</td></tr>" for name, value in WANTED.items()) + "</table>",
    "a dictionary of Python": repr(WANTED),
    "an object of JavaScript": "{\n  // memory\n" + "".join(f"  {name}: '{value}',\n" for name, value in WANTED.items()) + "}",
    "pairs of JSON": str([[name, value] for name, value in WANTED.items()]).replace("'", '"'),
    "pg_settings by name": str({name: {"setting": value, "unit": ""} for name, value in WANTED.items()}).replace("'", '"'),
    "keys": "".join(f"- key: {name}\n  value: {value}\n" for name, value in WANTED.items()),
    "code of Markdown": "".join(f"- `{name}`: `{value}`\n" for name, value in WANTED.items()),
    "pg_conftool": "".join(f"pg_conftool 16 main set {name} {value}\n" for name, value in WANTED.items()),
    "initdb": "initdb -D data " + " ".join(f"--set {name}={value}" for name, value in WANTED.items()),
    "Puppet's lines": "".join(f"config_entry {{ '{name}':\n  ensure => present,\n  value  => '{value}',\n}}\n" for name, value in WANTED.items()),
    "variables of an image": "".join(f"POSTGRESQL_{name.upper()}={value}\n" for name, value in WANTED.items()),
    "TOML, a number": "[postgresql]\nshared_buffers = \"2GB\"\nwork_mem = '8MB'\nrandom_page_cost = 1.1\njit = \"off\"\n",
    "Heroku": "=== postgresql-cubed-1\nshared-buffers: 2GB\nwork-mem:       8MB\nrandom-page-cost: 1.1\njit: off\n",
    "an image and its command": 'FROM postgres:18\nRUN echo "shared_buffers=2GB" >> /x.conf\nRUN echo "work_mem=8MB" >> /x.conf\n'
    'CMD ["postgres", "-c", "random_page_cost=1.1", "-c", "jit=off"]\n',
    "gcloud": "gcloud sql instances patch i --database-flags=" + ",".join(f"{name}={value}" for name, value in WANTED.items()),
    "az": "".join(f"az postgres flexible-server parameter set -g r --name {name} --value {value}\n" for name, value in WANTED.items()),
    "a difference": "--- a/postgresql.conf\n+++ b/postgresql.conf\n@@ -1,3 +1,5 @@\n-work_mem = 4MB\n shared_buffers = 2GB\n"
    "+work_mem = 8MB\n+random_page_cost = 1.1\n jit = off\n",
    "ALTER DATABASE and ROLE": "ALTER DATABASE shop SET shared_buffers = '2GB';\nALTER ROLE app SET work_mem = '8MB';\n"
    "ALTER ROLE app IN DATABASE shop SET random_page_cost TO 1.1;\nALTER USER app SET jit TO off; -- slow",
    "Patroni": "scope: shop\nbootstrap:\n  dcs:\n    ttl: 30\n    postgresql:\n      use_slots: true\n"
    "      parameters:\n        shared_buffers: 2GB\n        work_mem: '8MB'  # more\n"
    '        random_page_cost: 1.1\n        jit: "off"\n  initdb:\n  - encoding: UTF8\n  port: 5432\n',
    "CloudNativePG": "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata:\n  name: shop\nspec:\n"
    '  instances: 3\n  postgresql:\n    parameters:\n      shared_buffers: "2GB"\n      work_mem: "8MB"\n'
    '      random_page_cost: "1.1"\n      jit: "off"\n  storage:\n    size: 10Gi\n',
    "a container in Java": 'container.setCommand("postgres ' + " ".join(f"-c {name}={value}" for name, value in WANTED.items()) + '")',
    "options of SQLAlchemy": 'create_engine(url, connect_args={"options": "' + " ".join(f"-c {name}={value}" for name, value in WANTED.items()) + '"})',
    "properties": "".join(f"postgresql.{name}={value}\n" for name, value in WANTED.items()),
    "a ConfigMap of JSON": json.dumps({"kind": "ConfigMap", "data": {"postgresql.conf": "".join(f"{name} = {value}\n" for name, value in WANTED.items())}}),
    "a list of Terraform": "  parameters = [\n" + "".join(f'    {{ name = "{name}", value = "{value}" }},\n' for name, value in WANTED.items()) + "  ]\n",
    "a unit of systemd": '[Service]\nEnvironment="PGOPTIONS=' + " ".join(f"-c {name}={value}" for name, value in WANTED.items()) + '"\n',
    "arrows": "".join(f"{name} -> {value}\n" for name, value in WANTED.items()),
    "plain YAML": "shared_buffers: 2GB\nwork_mem: 8MB\nrandom_page_cost: 1.1\njit: off\n",
    "a command": "docker run -d postgres:18 -c shared_buffers=2GB -c 'work_mem=8MB' -c random_page_cost=1.1 --jit=off",
    "postgres": "postgres -D /data -cshared_buffers=2GB --work-mem=8MB --random_page_cost=1.1 -c jit=off",
    "a composition": "services:\n  db:\n    image: postgres:18\n    command: >\n      postgres -c shared_buffers=2GB\n"
    '        -c work_mem=8MB\n        -c random_page_cost=1.1 -c jit=off\n    ports: ["5432:5432"]\n',
    "a list of a composition": "command:\n  - postgres\n  - -c\n  - shared_buffers=2GB\n  - -c\n  - work_mem=8MB\n"
    '  - "-c"\n  - "random_page_cost=1.1"\n  - -c\n  - jit=off\n',
    "a list on one line": 'command: ["postgres", "-c", "shared_buffers=2GB", "-c", "work_mem=8MB", '
    '"-c", "random_page_cost=1.1", "-c", "jit=off"]',
    "CSV of pg_settings": "name,setting,unit\nshared_buffers,262144,8kB\nwork_mem,8192,kB\n"
    "random_page_cost,1.1,\njit,off,\nblock_size,8192,\n",
    "whole CSV of pg_settings": 'name,setting,unit,category,source\nshared_buffers,262144,8kB,"A / B, C",configuration file\n'
    "work_mem,8192,kB,X,command line\nrandom_page_cost,1.1,,X,environment variable\njit,off,,X,configuration file\nfsync,on,,X,default\nDateStyle,ISO,,X,session\nwork_mem,4096,kB,X,database\n",
    "psql's table": "      name       | setting | unit \n-----------------+---------+------\n"
    " shared_buffers  | 262144  | 8kB\n work_mem        | 8192    | kB\n random_page_cost | 1.1 | \n jit | off | \n(4 rows)\n",
    "SHOW ALL": "name | setting | description\n---+---+---\nshared_buffers | 2GB | Sets it.\nwork_mem | 8MB | x\n"
    "random_page_cost | 1.1 | x\njit | off | x\n",
    "a markdown table": "| Name | Value |\n|---|---|\n| shared_buffers | 2GB |\n| work_mem | 8MB |\n"
    "| random_page_cost | 1.1 |\n| jit | off |\n",
    "RDS": '{"Parameters": [{"ParameterName": "shared_buffers", "ParameterValue": "262144", "Source": "user"},'
    '{"ParameterName": "work_mem", "ParameterValue": "8192", "Source": "user"},'
    '{"ParameterName": "fsync", "ParameterValue": "on", "Source": "engine-default"},'
    '{"ParameterName": "array_nulls", "Source": "user"},'
    '{"ParameterName": "random_page_cost", "ParameterValue": "1.1"}, {"ParameterName": "jit", "ParameterValue": "0"}]}',
    "RDS as CSV": "ParameterName,ParameterValue,AllowedValues\nshared_buffers,262144,16-1073741823\nwork_mem,8192,64-2147483647\n"
    'random_page_cost,1.1,\njit,0,"0,1"\n',
    "Cloud SQL": '{"settings": {"tier": "db-custom-4-15360", "databaseFlags": [{"name": "shared_buffers", "value": "262144"},'
    '{"name": "work_mem", "value": "8192"}, {"name": "random_page_cost", "value": "1.1"}, {"name": "jit", "value": "off"}]}}',
    "Azure": '[{"name": "shared_buffers", "value": "262144", "source": "user-override", "unit": "8kB"},'
    '{"name": "work_mem", "value": "8192", "source": "user-override"}, {"name": "random_page_cost", "value": "1.1"},'
    '{"name": "jit", "value": "off"}, {"name": "fsync", "value": "on", "source": "system-default"}]',
    "Terraform": "".join(f'parameter {{\n  name  = "{name}"\n  value = "{value}"\n}}\n' for name, value in WANTED.items()),
    "Cloud SQL in YAML": "databaseFlags:\n" + "".join(f'- name: {name}\n  value: "{value}"\n' for name, value in WANTED.items()),
    "Ansible": "".join(f"- postgresql_set:\n    name: {name}\n    value: {value}\n" for name, value in WANTED.items()),
    "an expanded table": "".join(f"-[ RECORD 1 ]---\nname    | {name}\nsetting | {value}\nunit    | \n" for name, value in WANTED.items()),
    "SHOW": "".join(f"db=# show {name};\n {name} \n-------\n {value}\n(1 row)\n\n" for name, value in WANTED.items()),
    "a block of YAML": "primary:\n  extendedConfiguration: |\n" + "".join(f"    {name} = {value}\n" for name, value in WANTED.items()) + "replicas: 2\n",
    "a fence": "```ini\n" + "".join(f"{name} = {value}\n" for name, value in WANTED.items()) + "```\n",
    "a mail": "".join(f"> {name} = {value}\n" for name, value in WANTED.items()),
    "postgres alone": "postgres -D /data --shared-buffers=2GB --work_mem=8MB --random_page_cost=1.1 --jit=off",
    "an object": '{"shared_buffers": "2GB", "work_mem": "8MB", "random_page_cost": 1.1, "jit": false}',
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_each_form_sets_the_same(form):
    for text in (FORMS[form], "\ufeff" + FORMS[form].replace("\n", "\r\n")):
        file = conf_file.read(text)
        read = {
            name: values.parse(value, setting(name, "18"))
            for name, value in file.settings.items()
        }
        assert read == {
            name: values.parse(value, setting(name, "18"))
            for name, value in WANTED.items()
        }
        assert [fault.code for fault in file.faults] == (
            ["include_not_followed"] if form == "postgresql.conf" else []
        )


@pytest.mark.parametrize(
    "line",
    ["work_mem = 64 MB", "work_mem 64MB extra", "work_mem", "  work_mem = '64MB' x"],
)
def test_a_setting_that_is_written_wrong_is_no_other_form(line):
    read = conf_file.read(f'{{\nshared_buffers = "2GB";\n{line}\n')

    assert 3 in [fault.line for fault in read.faults]


def test_statements_of_a_script_for_psql_are_read():
    text = 'psql -U postgres -c "ALTER SYSTEM SET fsync=off;"\npsql -c "ALTER SYSTEM SET shared_buffers = \'10 GB\';"'
    assert conf_file.read(text).settings == {"fsync": "off", "shared_buffers": "10 GB"}


def test_statements_have_sql_literals_and_lists():
    text = "ALTER SYSTEM SET log_line_prefix = '%m ''a'' # ';\nALTER ROLE a SET search_path TO app, public;"
    assert conf_file.read(text).settings == {
        "log_line_prefix": "%m 'a' # ",
        "search_path": "app, public",
    }


@pytest.mark.parametrize(
    "text",
    [
        "log_line_prefix = '%m # not a comment '' '",
        "work_mem = '1.5MB'",
        "x.y = 'a: b'",
        "primary_conninfo = 'host=a -c b=c'",
        "log_destination = 'stderr,csvlog'",
        "name = setting",
    ],
)
def test_a_postgresql_conf_is_no_other_form(text):
    file = conf_file.read(text)
    assert not file.faults
    assert len(file.settings) == 1


def test_unknown_settings_of_a_block_and_formulas_are_left_to_the_check():
    text = "parameters:\n  shared_bufers: 2GB\n  work_mem: '{DBInstanceClassMemory/32768}'\n"
    assert conf_file.read(text).settings == {
        "shared_bufers": "2GB",
        "work_mem": "{DBInstanceClassMemory/32768}",
    }


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (
            "command: postgres -c work_mem=8MB -c shared_preload_libraries=a,b -c jit=off",
            "shared_preload_libraries",
            "a,b",
        ),
        ("command: [postgres,-c,work_mem=8MB,-c,jit=off]", "work_mem", "8MB"),
        ("postgresql_conf:\n  listen_addresses: \"'*'\"\n", "listen_addresses", "*"),
        (
            "wal_level setting:       replica\nmax_locks_per_xact setting:   64\n",
            "max_locks_per_transaction",
            "64",
        ),
        (
            '{"user_config": {"pg": {"jit": false}, "work_mem": 64}}',
            "work_mem",
            "64MB",
        ),  # Aiven
        (
            "Data\n====\npostgresql.conf:\n----\nwork_mem = 8MB\njit = off\n",
            "work_mem",
            "8MB",
        ),  # kubectl
    ],
)
def test_values_are_read_whole(text, name, value):
    assert conf_file.read(text).settings[name] == value


def test_what_a_command_names_and_does_not_set_is_not_left_out():
    text = "RUN tune shared_buffers 2GB\nCMD [postgres, -c, work_mem=8MB]\n"
    assert conf_file.read(text).faults


@pytest.mark.parametrize(
    "unit",
    [
        "-c a=b ",
        "a: b\n",
        "a,b,",
        "name|setting|",
        "set x = ",
        "{",
        '[{"a":',
        "alter system set ",
    ],
)
def test_a_hostile_text_is_answered_soon(unit):
    text = unit * (100_000 // len(unit))
    assert min_of(lambda: conf_file.read(text), 3) < 3


@pytest.mark.parametrize(
    "text",
    [
        # A third column that is another value, and no unit.
        "| Parameter | Small | Large |\n|---|---|---|\n| work_mem | 4MB | 8GB |\n| shared_buffers | 1GB | 8GB |\n",
        # One that is no setting.
        "work_mem = 4MB; pool_mode = session\n",
        "work_mem = 4MB, and shared_buffers = 1GB\n",
        # A line whose value has no end.
        "work_mem = 4MB\nlog_line_prefix = '''\n",
    ],
)
def test_what_is_ambiguous_is_not_read(text):
    reading = conf_file.read(text)

    assert reading.faults
    assert set(reading.settings) <= {"work_mem"}


def test_names_in_a_list_keep_the_quotes_that_they_need():
    reading = conf_file.read(
        """ALTER SYSTEM SET search_path = "$user", "Shop", "public", pg_catalog;\n"""
    )

    assert reading.settings == {"search_path": '"$user", "Shop", public, pg_catalog'}
