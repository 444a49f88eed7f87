"""Settings, the table of docs/deployment.md and docker-compose.yml name the same variables."""

import fcntl
import json
import os
import pickle
import pkgutil
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path

import django
import pytest
import yaml
from cryptography.fernet import Fernet
from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.cache import cache
from django.core.management import get_commands
from django.urls import reverse

from benchlab.celery import app
from benchlab.environment import Environment
from runs.histories.services import webhooks
from runs.models import Campaign, Change, Metric
from runs.shared import signs
from tests.each import check_each
from tests.migrated import ROOT

# The image sets the first, `script/server` the second; the third is for developers. Those of a
# joined host are in its folder.
NOT_COMPOSED = {
    "BENCHLAB_VAR",
    "BENCHLAB_SHARED_ACCOUNT",
    "DEBUG",
    "BENCHLAB_WORKER_HOST",
    "BENCHLAB_HOST_NAME",
}


@pytest.fixture(scope="module")
def read():
    """What settings.py and gunicorn read of the environment."""
    text = (ROOT / "benchlab/settings.py").read_text()
    # gunicorn itself reads the last one.
    return {*re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', text), "WEB_CONCURRENCY"}


def test_the_documentation_lists_what_can_be_set(read):
    text = (ROOT / "docs/deployment.md").read_text()
    cells = re.findall(r"^\| (`[A-Z].*?) \|", text, re.MULTILINE)
    documented = {name for cell in cells for name in re.findall(r"`([A-Z_]+)", cell)}

    assert len(read) > 20
    assert documented == read


def test_the_description_of_the_code_names_what_is_there():
    text = (ROOT / "docs/architecture.md").read_text()
    rooms = "|".join(
        path.parent.name for path in sorted((ROOT / "runs").glob("*/__init__.py"))
    )
    rooms += "|celery_messages"
    named = set(re.findall(rf"(?<![./\w`])(?:{rooms})(?:\.[a-z_]+)+\b(?<!\.md)", text))
    assert "queue.services.leases.claim" in named

    def check(name: str) -> None:
        pkgutil.resolve_name(f"runs.{name}")

    check_each(sorted(named), check)


def test_the_composition_passes_on_what_can_be_set(read):
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    for service in ("migrate", "web", "worker", "control"):
        assert (
            set(composed["services"][service]["environment"]) == read - NOT_COMPOSED
        ), service


def test_what_has_no_value_in_the_composition_is_not_an_empty_text():
    """An empty text is no number: the services would not start."""
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    values = composed["services"]["web"]["environment"].values()
    assert not [
        value for value in values if value is not None and value.endswith(":-}")
    ]


def test_the_composition_needs_no_newer_compose():
    """docker-compose 1.29 understands no default within a default."""
    text = (ROOT / "docker-compose.yml").read_text()
    assert re.findall(r"\$\{[^}]*\$\{", text) == []


def test_one_worker_takes_the_runs_of_another_that_hangs():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert services["worker"]["scale"] == 2


def test_every_service_has_a_health_check_or_ends():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    without = {
        name
        for name, each in services.items()
        if "healthcheck" not in each and each.get("restart") != "no"
    }
    assert without == set()


def test_the_example_names_what_the_composition_reads():
    example = (ROOT / ".env.example").read_text()
    composed = (ROOT / "docker-compose.yml").read_text()
    named = re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE)
    assert len(named) > 8
    assert [name for name in named if not re.search(rf"\b{name}\b", composed)] == []


def test_the_secrets_of_a_deployment_are_made_once(tmp_path):
    environment = {"PATH": os.environ["PATH"]}

    def made():
        command = [
            sys.executable,
            "-m",
            "benchlab.first_environment",
            tmp_path,
            tmp_path / "s",
        ]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr

    assert made() == (0, "")
    files = [tmp_path / "environment", *(tmp_path / "s").iterdir()]
    before = {file.name: file.read_bytes() for file in files}
    assert made() == (0, "")
    assert {file.name: file.read_bytes() for file in files} == before
    values = dict(
        line.split("=", 1) for line in before["environment"].decode().splitlines()
    )
    Fernet(values["BENCHLAB_ENCRYPTION_KEY"])
    assert before["postgresql-password"].decode().strip() in values["DATABASE_URL"]
    assert set(before) == {
        "environment",
        "postgresql-password",
        "redis-password",
        "redis.conf",
        "tls.crt",
        "tls.key",
    }
    assert (tmp_path / "environment").stat().st_mode & 0o77 == 0


def test_the_environment_is_built_with_the_systems_python_unless_another_is_named(
    tmp_path,
):
    (tmp_path / "python3.11").symlink_to(sys.executable)
    script = f"root={ROOT}; . {ROOT}/script/lib/environment.sh; find_python"

    def found(**variables: str) -> str:
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"} | variables
        answer = subprocess.run(
            ["sh", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return answer.stdout.strip()

    makes = [
        shutil.which("python3.11", path="/usr/bin") or "false",
        "-c",
        "import ensurepip, venv",
    ]
    has_own = subprocess.run(makes, check=False, capture_output=True).returncode == 0
    assert found() == ("/usr/bin/python3.11" if has_own else "python3.11")
    named = str(tmp_path / "python3.11")
    assert found(BENCHLAB_PYTHON=named) == named


def test_the_unit_of_the_web_runs_what_the_image_runs():
    image = re.search(r"^CMD (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    words = json.loads(image[1])
    unit = (ROOT / "deploy/systemd/benchlab-web.service").read_text()
    assert words[2:4] == ["--config", "python:benchlab.gunicorn"]
    assert [word for word in words if word not in unit] == [
        "0.0.0.0:8000",
        "--worker-tmp-dir",
        "/dev/shm",
    ]


def test_a_wrong_setting_ends_the_web_service_with_its_line():
    environment = os.environ | {"BENCHLAB_PROXIES": "three"}
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "benchlab.wsgi:application",
            "--config",
            "python:benchlab.gunicorn",
            "--bind",
            "127.0.0.1:0",
        ],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode != 0
    assert (
        ended.stderr.count("BenchLab: BENCHLAB_PROXIES is 'three', which is not") == 1
    )
    assert "Booting worker" not in ended.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_the_units_are_hardened():
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-300:] + done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_takes_the_units(tmp_path):
    """Each as it is, but for programs that only an installation has."""
    for unit in sorted((ROOT / "deploy/systemd").iterdir()):
        text = re.sub(r"/opt/benchlab/\.venv/bin/\w+", "/bin/true", unit.read_text())
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("lab", "before", "named", "used"),
    [
        ("runs", "", "", ".venv-tests"),
        ("runs", "tests", "", ""),
        ("runs", "", "/own", "/own"),
        ("ended", "", "", ""),
        ("", "", "", ""),
    ],
)
def test_tests_leave_the_packages_of_a_running_lab_alone(
    tmp_path, lab, before, named, used
):
    (tmp_path / "var").mkdir()
    (tmp_path / ".venv").mkdir()
    if before:
        (tmp_path / ".venv/.installed-tests-requirements-txt").touch()
    script = (
        f"root={tmp_path}; . {ROOT}/script/lib/environment.sh; keep_apart_from_a_running_lab; "
        'venv=${BENCHLAB_VENV:-}; echo "${venv#$root/}"'
    )
    environment = {
        "PATH": os.environ["PATH"],
        **({"BENCHLAB_VENV": named} if named else {}),
    }
    with (tmp_path / "var/instance.lock").open("w") if lab else nullcontext() as lock:
        if lab == "runs":
            fcntl.flock(lock, fcntl.LOCK_EX)
        told = subprocess.check_output(
            ["sh", "-euc", script],
            env=environment,
            text=True,
            stderr=subprocess.DEVNULL,
        )
    assert told.strip() == used


def test_the_commands_of_the_guide_are_there():
    """Each manage.py command, script, module, file and service that docs/deployment.md names."""
    text = (ROOT / "docs/deployment.md").read_text()
    commands = set(re.findall(r"manage\.py ([a-z_]+)", text))
    assert {"backup", "restore", "doctor", "verify"} <= commands
    assert commands - set(get_commands()) == set()
    paths = re.findall(r"(?<![\w/])((?:deploy|script|tests)/[\w./-]+\w)", text)
    modules = [
        name.replace(".", "/") + ".py"
        for name in re.findall(r"-m (benchlab\.\w+)", text)
    ]
    assert [path for path in [*paths, *modules] if not (ROOT / path).exists()] == []
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    named = re.findall(r"docker compose (?:exec|run --rm) (\w+)", text)
    assert named
    assert set(named) <= set(services)


def test_machines_of_the_lab_keep_their_host_keys_when_they_are_made_again():
    """BenchLab refuses a machine that shows another key."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    homes = [
        volume
        for name, each in services.items()
        if each.get("environment", {}).get("LAB_NAME")
        for volume in each["volumes"]
        if volume.endswith(":/home/bench")
    ]
    assert sorted(homes) == [
        f"lab-{name}:/home/bench"
        for name in ("bastion", "generator", "target1", "target2")
    ]


def test_a_web_process_has_the_pages_loaded_before_its_first_request():
    """gunicorn forks after that, so its workers share them."""
    code = "import sys; from benchlab import wsgi; print(*sys.modules)"
    keys = {
        "SECRET_KEY": "only for this",
        "BENCHLAB_ENCRYPTION_KEY": settings.ENCRYPTION_KEY,
    }
    loaded = subprocess.check_output(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, **keys},
        cwd=ROOT,
        text=True,
    )
    modules = set(loaded.split())
    shared = {"runs.urls", "runs.compare.views.compare", "scipy.special"}
    assert shared | {"runs.campaigns.urls"} <= modules
    # It takes a third as long to load as everything else: `import scipy as sp` loads it late.
    assert "scipy.stats" not in modules


def test_no_collection_looks_at_what_a_web_process_has_loaded():
    code = (
        "import gc; from gunicorn.config import Config; from benchlab import gunicorn\n"
        "config = Config(); config.set('when_ready', gunicorn.when_ready)\n"
        "tracked = len(gc.get_objects()); config.when_ready(None)\n"
        "print(tracked, gc.get_freeze_count(), len(gc.get_objects()), gc.get_threshold()[0])"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    tracked, frozen, left, threshold = map(int, printed.split())
    assert frozen > tracked * 0.9
    assert left < tracked * 0.1
    assert threshold >= 10_000


@pytest.mark.parametrize("name", ["control", "worker"])
def test_unit_and_service_start_celery_alike(name):
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    unit = (ROOT / f"deploy/systemd/benchlab-{name}.service").read_text()
    command = services[name]["command"]
    assert command.startswith("celery -A benchlab worker ")
    assert f"/{command}\n" in unit


def test_reports_name_a_campaigns_page_without_loading_the_pages():
    campaign = Campaign(slug="nightly")
    change = Change(pk=5, metric=Metric(name="tps"))
    page, history = (
        reverse(f"campaign-{each}", args=["nightly"]) for each in ("detail", "history")
    )
    assert webhooks.campaign_path(campaign) == page
    assert webhooks.history_path(campaign, change) == f"{history}?metric=tps#change-5"


# Variable, reader, its other arguments, what it must not hold.
WRONG = [
    ("BENCHLAB_PROXIES", "int", {"default": 0}, "one"),
    ("BENCHLAB_WATCH_SECONDS", "float", {"default": 1.0}, "abc"),
    ("BENCHLAB_WATCH_SECONDS", "float", {"default": 1.0}, "0"),
    ("BENCHLAB_WATCH_SECONDS", "float", {"default": 1.0}, "nan"),
    ("BENCHLAB_KEPT_CLUSTERS_HOURS", "amount", {"default": 6.0}, "-1"),
    ("BENCHLAB_TLS", "bool", {"default": False}, "maybe"),
    ("DATABASE_URL", "db", {"default": ""}, "nonsense"),
    ("DATABASE_URL", "db", {"default": ""}, "mysql://host/benchlab"),
    ("DATABASE_URL", "db", {"default": ""}, "postgresql://u:hidden@host:port/benchlab"),
    ("DATABASE_URL", "db", {"default": ""}, "postgresql://u:hidden@host:5432"),
    ("DATABASE_REPLICA_URL", "db", {"default": ""}, "standby.example"),
    ("REDIS_URL", "redis", {"default": ""}, "nonsense"),
    ("REDIS_URL", "redis", {"default": ""}, "redis://host:port/0"),
    ("EMAIL_URL", "mail", {"default": ""}, "mail.example"),
    ("BENCHLAB_SITES", "slugs", {}, "tokyo,Not one"),
    ("BENCHLAB_RETENTION", "days", {}, "files"),
    ("BENCHLAB_RETENTION", "days", {}, "files=-1"),
    ("BENCHLAB_RETENTION", "days", {}, "figures=10"),
    ("BENCHLAB_RETENTION", "days", {}, "files=1,files=2"),
    ("BENCHLAB_ARTIFACTS", "bucket", {}, "/var/files"),
    ("BENCHLAB_ARTIFACTS", "bucket", {}, "s3://key:hidden@bucket/files"),
    ("TIME_ZONE", "time_zone", {"default": "UTC"}, "Mars/Olympus"),
    ("TIME_ZONE", "time_zone", {"default": "UTC"}, "../etc/passwd"),
    ("LOG_LEVEL", "one_of", {"choices": ("INFO", "DEBUG"), "default": "INFO"}, "loud"),
]


def test_a_wrong_value_is_named_and_no_password_is_told(monkeypatch):
    def is_told(sample):
        name, reader, arguments, value = sample
        monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            getattr(Environment(), reader)(name, **arguments)
        line = str(ended.value)
        assert line.startswith(f"BenchLab: {name} ")
        assert "\n" not in line
        assert "hidden" not in line

    check_each(WRONG, is_told)


def test_every_variable_that_the_guide_gives_a_meaning_of_0_takes_it():
    rows = [
        line.split("|")
        for line in (ROOT / "docs/deployment.md").read_text().splitlines()
    ]
    zeros = [
        row for row in rows if len(row) > 2 and re.search(r"(?<![\d.])0: ", row[2])
    ]
    names = {name for row in zeros for name in re.findall(r"`([A-Z_]+)`", row[1])}
    assert {"BENCHLAB_BACKUP_HOURS", "BENCHLAB_KEPT_CLUSTERS_HOURS"} <= names
    done = subprocess.run(
        [sys.executable, "-c", "import benchlab.settings"],
        cwd=ROOT,
        env=os.environ | dict.fromkeys(names, "0"),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_nothing_is_the_default_and_what_is_right_is_taken(monkeypatch):
    for value in ("", "  "):
        monkeypatch.setenv("X", value)
        assert Environment().int("X", default=3) == 3
        assert Environment().bool("X", default=True) is True
        assert Environment().mail("X", default="") == ""
        assert Environment().db("X", default="") == {}
    monkeypatch.setenv("X", "tokyo, berlin,")
    assert Environment().slugs("X") == ("tokyo", "berlin")
    monkeypatch.setenv("X", "files=365, uploads = 0")
    assert Environment().days("X") == {"files": 365, "uploads": 0}
    monkeypatch.setenv("X", "off")
    assert Environment().bool("X", default=True) is False
    monkeypatch.setenv("X", "postgresql://u:p%40@host:5433/lab")
    found = Environment().db("X", default="")
    assert (found["NAME"], found["PORT"], found["PASSWORD"]) == ("lab", 5433, "p@")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BENCHLAB_SUPERVISE_SECONDS", "often"),
        ("SECRET_KEY", ""),
        ("DATABASE_URL", None),
    ],
)
def test_a_command_ends_with_one_line_and_a_status(name, value, tmp_path):
    """The third is a database at a port where nobody listens."""
    environment = os.environ | {name: value or "postgresql://x:hidden@127.0.0.1:9/x"}
    if name == "SECRET_KEY":
        environment[name] = ""
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("BenchLab: ")
    assert "hidden" not in line


def test_a_standby_is_one_setting(tmp_path):
    code = (
        "from django.conf import settings as s; import json;"
        "found = s.DATABASES['replica'];"
        "print(json.dumps([found['PORT'], found['TEST']['MIRROR'],"
        " s.DATABASE_ROUTERS, 'benchlab.replica.ReadReplica' in s.MIDDLEWARE]))"
    )
    environment = os.environ | {
        "DATABASE_REPLICA_URL": "postgresql://x:y@standby:5433/x",
        "DJANGO_SETTINGS_MODULE": "benchlab.settings",
    }
    told = subprocess.check_output(
        [sys.executable, "-c", code], cwd=ROOT, env=environment
    )
    assert json.loads(told) == [5433, "default", ["benchlab.replica.Router"], True]


def test_no_store_that_others_may_write_to_holds_what_is_executed():
    """Whoever can write to Redis or to the table of sessions must not run code by it."""
    assert (
        settings.CACHES["default"]["OPTIONS"]["serializer"]
        == "benchlab.cache.JSONSerializer"
    )
    assert settings.SESSION_SERIALIZER.endswith(".JSONSerializer")
    assert settings.MESSAGE_STORAGE.startswith("django.contrib.messages.")
    assert list(app.conf.accept_content) == ["json"]
    assert (app.conf.task_serializer, app.conf.event_serializer) == ("json", "json")
    unsafe = re.compile(
        r"\b(?:pickle|marshal|shelve|dill|cloudpickle)\b|yaml\.(?:load|unsafe)"
    )
    sources = [*ROOT.glob("runs/**/*.py"), *ROOT.glob("benchlab/**/*.py")]
    found = [path for path in sources if unsafe.search(path.read_text())]
    assert [
        str(path.relative_to(ROOT)) for path in found if path.name != "cache.py"
    ] == []


def test_a_pickle_in_redis_is_not_executed(tmp_path):
    mark = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (mark.touch, ())

    key = cache.make_key("a-limit")
    signs.redis_client().set(key, pickle.dumps(Evil()))
    with pytest.raises(ValueError, match=r"."):
        cache.get("a-limit")
    assert not mark.exists()
    cache.set("a-limit", 3)
    assert cache.incr("a-limit") == 4
    cache.set("a-list", [1.5, "x"])
    assert cache.get("a-list") == [1.5, "x"]


def test_redis_of_the_composition_has_a_password_and_a_network_without_targets():
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = composed["services"]
    of_data = {
        name for name, each in services.items() if "data" in each.get("networks", [])
    }
    assert of_data == {
        "postgresql",
        "redis",
        "migrate",
        "web",
        "control",
        "worker",
        "backup",
        "lab",
    }
    assert composed["networks"]["data"] == {"internal": True}
    assert (
        services["redis"]["networks"] == services["postgresql"]["networks"] == ["data"]
    )
    assert services["redis"]["command"] == "redis-server /run/benchlab/redis.conf"


def test_an_older_instance_gets_a_password_for_redis(tmp_path):
    environment = tmp_path / "environment"
    environment.write_text(
        "SECRET_KEY=x\nREDIS_URL=redis://redis:6379/0\nTIME_ZONE=UTC\n"
    )
    command = [
        sys.executable,
        "-m",
        "benchlab.first_environment",
        tmp_path,
        tmp_path / "s",
    ]
    for _again in range(2):
        subprocess.run(command, cwd=ROOT, check=True)
    [password] = re.findall(
        r"requirepass (\S{20,})\n", (tmp_path / "s/redis.conf").read_text()
    )
    assert environment.read_text() == (
        f"SECRET_KEY=x\nREDIS_URL=redis://:{password}@redis:6379/0\nTIME_ZONE=UTC\n"
    )


def test_the_proxy_bounds_what_strangers_send():
    text = (ROOT / "deploy/nginx.conf").read_text()
    proxy = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][
        "proxy"
    ]
    everywhere, imports = (
        int(number) * {"m": 1, "g": 1024}[unit]
        for number, unit in re.findall(r"client_max_body_size (\d+)([mg]);", text)
    )
    (requests,) = re.findall(r"limit_conn address (\d+);", text)
    (memory,) = re.findall(r"^/tmp:size=(\d+)m,", proxy["tmpfs"][0])

    assert everywhere <= 64
    assert everywhere * int(requests) <= int(memory) <= 512
    assert imports == 1024
    end = text.index("client_max_body_size 1g")
    assert (
        "if ($is_nobody) { return 401; }" in text[text.rindex("location", 0, end) : end]
    )
    assert "proxy_request_buffering off" in text[end:]


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx here")
def test_nginx_takes_the_file_of_the_proxy(tmp_path):
    server = (ROOT / "deploy/nginx.conf").read_text()
    # The name of web is the composition's.
    server = re.sub(r"\bweb:(\d+)", r"127.0.0.1:\1", server)
    server = re.sub(r"(ssl_certificate) \S+;", rf"\1 {tmp_path}/a.pem;", server)
    server = re.sub(r"(ssl_certificate_key) \S+;", rf"\1 {tmp_path}/key.pem;", server)
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=localhost",
            "-keyout",
            tmp_path / "key.pem",
            "-out",
            tmp_path / "a.pem",
        ],
        check=True,
        capture_output=True,
    )
    whole = (
        f"events {{}}\npid {tmp_path}/pid;\nerror_log stderr;\nhttp {{\n{server}\n}}\n"
    )
    file = tmp_path / "nginx.conf"
    file.write_text(server if "events" in server else whole)

    done = subprocess.run(
        ["nginx", "-t", "-c", file, "-p", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "syntax is ok" in done.stderr, done.stderr


ALERTS = yaml.safe_load((ROOT / "deploy/prometheus-rules.yml").read_text())["groups"][
    0
]["rules"]


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = yaml.safe_load((ROOT / "tests/unit/prometheus_cases.yml").read_text())[
        "tests"
    ]
    told = {
        (
            re.search(r'alertname="(\w+)"', asked["expr"])[1],
            asked["exp_samples"][0]["value"] == 1,
        )
        for case in cases
        for asked in case["promql_expr_test"]
    }
    assert told == {
        (alert["alert"], fires) for alert in ALERTS for fires in (False, True)
    }


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool here")
def test_alerts_fire_when_they_should(tmp_path):
    rules = {"groups": [{"name": "benchlab", "rules": ALERTS}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    cases = (ROOT / "tests/unit/prometheus_cases.yml").read_text()
    file = tmp_path / "cases.yml"
    file.write_text(cases.replace("../../deploy/prometheus-rules.yml", "rules.yml"))

    done = subprocess.run(
        ["promtool", "test", "rules", file], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_no_command_of_the_guide_tells_a_password_to_other_accounts():
    guide = (ROOT / "docs/deployment.md").read_text()
    assert "ROLE benchlab LOGIN PASSWORD" in guide
    assert not re.findall(r"psql[^|\n]*(?:-c|--command)[^\n]*PASSWORD", guide)


def test_each_file_of_others_that_a_browser_gets_is_listed():
    page = (
        (ROOT / "docs/design-system.md").read_text().partition("## Files of others")[2]
    )
    listed = set(re.findall(r"\| `([a-z-]+)` \|", page))
    patterns = apps.get_app_config("staticfiles").ignore_patterns
    found = {
        Path(storage.location)
        for finder in get_finders()
        for _path, storage in finder.list(patterns)
    }
    site = Path(django.__file__).parents[1]
    owners = metadata.packages_distributions()
    packages = {
        owners[place.relative_to(site).parts[0]][0]
        for place in found - {ROOT / "static"}
    }
    assert {name.replace("_", "-") for name in packages} == listed


def test_each_image_can_be_pinned():
    composed = (ROOT / "docker-compose.yml").read_text()
    assert not re.findall(r"image: (?!\$\{BENCHLAB_)", composed)
    for file in ("Dockerfile", "deploy/lab/Dockerfile"):
        assert re.findall(r"^FROM (.*)", (ROOT / file).read_text(), re.MULTILINE) == [
            "${PYTHON_IMAGE}"
        ]


SAID = {
    "none": (
        '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}',
        0,
        "CHECKED, no",
    ),
    "some": (
        '{"dependencies": [{"name":"","version": "", "vulns": [{"id": "", "fix_versions": []}]}]}',
        1,
        "CHECKED, 1 known",
    ),
    "skipped": (
        '{"dependencies": [{"name": "a", "skip_reason": "x"}]}',
        2,
        "NOT CHECKED",
    ),
    "nothing": ("", 2, "NOT CHECKED"),
}


@pytest.mark.parametrize("said", [*SAID, "hangs"])
def test_the_audit_ends_in_time_with_a_result(tmp_path, said):
    """pip-audit is a stand-in: what it says of packages changes every day."""
    answer, status, result = SAID.get(said, ("", 2, "NOT CHECKED"))
    (tmp_path / "answer").write_text(answer)
    does = "exec sleep 600" if said == "hangs" else f"exec cat {tmp_path}/answer"
    uv = tmp_path / "venv/bin/uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(
        "#!/bin/sh\n"
        'for last; do :; done; [ "$1" = venv ] || exit 0\n'
        f'mkdir -p "$last/bin"; ln -s {sys.executable} "$last/bin/python"\n'
        f"printf '#!/bin/sh\\n{does}\\n' > \"$last/bin/pip-audit\"\n"
        'chmod +x "$last/bin/pip-audit"\n'
    )
    uv.chmod(0o755)
    done = subprocess.run(
        [ROOT / "script/audit"],
        env=os.environ
        | {"BENCHLAB_VENV": str(tmp_path / "venv"), "AUDIT_SECONDS": "3"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, result in done.stdout.splitlines()[-1]) == (
        status,
        True,
    ), done


def test_a_variable_of_the_process_makes_no_other_vanish(tmp_path):
    kept = {"SECRET_KEY": "of-the-file", "DATABASE_URL": "postgresql://x@file:5432/x"}
    kept |= {
        "BENCHLAB_ENCRYPTION_KEY": Fernet.generate_key().decode(),
        "TIME_ZONE": "Asia/Tokyo",
    }
    lines = [f"{name}={value}\n" for name, value in kept.items()]
    (tmp_path / "environment").write_text("".join(lines))
    own = {"DATABASE_URL": "postgresql://x@own:5432/x", "BENCHLAB_VAR": str(tmp_path)}
    others = {name: value for name, value in os.environ.items() if name not in kept}
    code = (
        "from benchlab import settings as s;"
        "print(s.SECRET_KEY, s.TIME_ZONE, s.DATABASES['default']['HOST'],"
        "s.SETTINGS_SET['DATABASE_URL'], s.SETTINGS_SET['TIME_ZONE'])"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", code], cwd=ROOT, env=others | own, text=True
    )
    assert said.split() == ["of-the-file", "Asia/Tokyo", "own", "True", "False"]
