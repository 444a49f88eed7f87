"""Foreign files are read in a process that has limits, and nothing to tell."""

import io
import json
import subprocess
import threading
import zipfile
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from runs.importers import strict_xml
from runs.query_plans.node import Plan
from runs.query_plans.reading import read as read_plan
from runs.reading import limits, process, readers, values
from runs.reading.process import Reading, reading
from runs.reading.refusals import NotUnderstood, TooMuch
from runs.tools.adapter import UnreadableOutput
from tests.unit.tools.reading import samples

LARGE = process.SMALL_CHARACTERS + 1
SYSTEM = "<System><Identifier>s</Identifier><TimeStamp>2026-01-01 00:00:00</TimeStamp></System>"

EMPTY = "<Result/>"


def packed(text):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("composite.xml", text)
    return b64encode(content.getvalue()).decode()


def composite(inner, *, declared="", encoding="utf-8"):
    head = f'<?xml version="1.0" encoding="{encoding}"?>{declared}'
    whole = f"{head}<PhoronixTestSuite>{SYSTEM}{inner}</PhoronixTestSuite>"
    return b64encode(whole.encode(encoding)).decode()


def imported(content, peer="phoronix", name="results.xml"):
    with reading() as current:
        return current.read(
            "import", {"peer": peer, "name": name, "content": content}, size=1
        )


def run_in_child(program):
    """What a program prints in a process with the limits."""
    code = f"import os, sys\nsys.path.append({process._ROOT!r})\n"
    code += "from runs.reading import limits\n"
    code += "limits.keep_within('.', (), limits.OF_A_REQUEST)\n" + program
    argv = [*process._COMMAND[:5], code]
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            argv, capture_output=True, text=True, env={}, cwd=folder, check=False
        )
    return done.returncode, (done.stdout + done.stderr).strip().rpartition("\n")[2]


def outcome(read):
    """What a reader makes of an output, in a form that can be compared."""
    try:
        found = read()
    except (UnreadableOutput, NotUnderstood) as error:
        refusal = getattr(error, "refusal", error)
        return refusal.code, refusal.wording, refusal.remedy
    return found, found.failure, [note.wording for note in found.notes]


def test_an_output_is_read_as_it_is_here():
    checked = 0
    for tool in ("fio", "sysbench", "hyperfine", "benchbase"):
        with reading() as current:
            for content in samples(tool).values():
                request = {"tool": tool, "files": {"stdout": content.decode()}}
                apart = outcome(lambda: current.read("tool", request, size=LARGE))  # noqa: B023
                here = outcome(lambda: Reading().read("tool", request, size=1))  # noqa: B023
                assert apart == here
                checked += 1
    assert checked > 20


def test_every_kind_is_read_in_a_process():
    text = "Seq Scan on a  (cost=0.00..1.00 rows=1 width=4)\n"
    first_line = b'{"instance":"","project":{},"type":"benchlab-export","version":2}\n'
    requests = {
        "export": {
            "lines": {"base64": b64encode(first_line).decode()},
            "is_last": False,
        },
        "import": {"peer": "phoronix", "name": "x", "content": composite("")},
        "load": {"text": "SELECT 1;", "prefix": "", "weights": "", "masks": False},
        "load data": {"text": "CREATE TABLE t (a integer);"},
        "load dump": {
            "part": {"base64": b64encode(b"CREATE TABLE t (a integer);").decode()},
            "is_last": True,
            "most_bytes": 1000,
        },
        "plan": {"text": text},
        "settings": {"text": "work_mem = 4MB"},
        "scripts": {"scripts": [], "variables": {}, "allows_shell": False},
        "tool": {
            "tool": "fio",
            "files": {"stdout": samples("fio")["seqwrite_json.txt"].decode()},
        },
    }
    assert requests.keys() == readers.KINDS.keys()
    for kind, request in requests.items():
        with reading() as current:
            assert current.read(kind, request, size=LARGE)


def test_a_small_text_is_read_here_and_all_of_a_request_count(monkeypatch):
    started = []
    start = process._Process._start
    monkeypatch.setattr(
        process._Process, "_start", lambda self: (started.append(self), start(self))[1]
    )
    request = {"text": "work_mem = 4MB"}
    with reading() as current:
        for _time in range(2):
            current.read("settings", request, size=process.SMALL_CHARACTERS // 2)
        assert not started
        current.read("settings", request, size=1)
        current.read("settings", request, size=1)
    assert len(started) == 1


def test_what_takes_too_long_is_ended_and_the_reason_said(monkeypatch):
    monkeypatch.setattr(process, "WAIT_SECONDS", 1.0)
    with pytest.raises(TooMuch, match="more than 1 s") as caught:
        imported(
            packed(
                f"<PhoronixTestSuite>{SYSTEM}{'<Result/>' * 2_000_000}</PhoronixTestSuite>"
            )
        )
    assert caught.value.code == "reading_too_slow"
    assert process._places._value == process.PLACES


def test_processor_time_ends_with_its_limit():
    program = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass"
    assert run_in_child(program)[0] == -24  # SIGXCPU


def test_memory_ends_with_its_limit():
    assert (
        "MemoryError"
        in run_in_child(f"bytearray({limits.OF_A_REQUEST.memory_bytes})")[1]
    )


@pytest.mark.parametrize(
    "program",
    [
        "import socket; socket.socket()",
        "os.fork()",
        "os.system('true')",
        "os.execv('/bin/true', ['true'])",
        "import subprocess; subprocess.run(['true'])",
        "import ctypes; ctypes.CDLL(None)",
        "open('/etc/passwd')",
        "open('/proc/self/environ')",
        "os.open('/tmp/benchlab-x', os.O_CREAT | os.O_WRONLY)",
        f"open({str(Path(process._ROOT, 'manage.py'))!r})",
        f"open({readers.__file__!r}, 'a')",
        "os.kill(os.getppid(), 0)",
    ],
)
def test_what_a_reader_never_does_is_refused(program):
    status, said = run_in_child(program)
    assert status == 1
    assert said.startswith("PermissionError")


def test_the_process_has_no_environment_and_no_django(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "a secret")
    program = "print(sorted(os.environ), 'django' in sys.modules)"
    current = process._Process("plan", 1e18)
    try:
        environment = Path(f"/proc/{current._popen.pid}/environ").read_bytes()
        files = {file.name for file in Path(f"/proc/{current._popen.pid}/fd").iterdir()}
    finally:
        current.end()
    assert b"secret" not in environment
    assert files <= {"0", "1", "2", "3"}
    status, said = run_in_child(program)
    assert (status, said) == (0, "['LC_CTYPE'] False")  # Python's own


def test_others_wait_for_a_place_and_are_told(monkeypatch):
    monkeypatch.setattr(process, "_places", threading.BoundedSemaphore(1))
    with reading() as first:
        with pytest.raises(NotUnderstood):
            first.read("plan", {"text": "x"}, size=LARGE)
        monkeypatch.setattr(process, "WAIT_SECONDS", 0.2)
        with pytest.raises(TooMuch) as caught, reading() as second:
            second.read("plan", {"text": "x"}, size=LARGE)
    assert caught.value.code == "reading_busy"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE a [<!ENTITY e "EXPANDED">]>',
        "<!DOCTYPE a>",
        '<!DOCTYPE a SYSTEM "/etc/passwd">',
    ],
)
def test_a_document_type_is_refused_in_every_encoding(declared, encoding):
    with pytest.raises(NotUnderstood, match="declares entities"):
        imported(composite("", declared=declared, encoding=encoding))


def test_deep_xml_is_refused():
    with pytest.raises(NotUnderstood, match="deeper"):
        imported(
            composite("<a>" * strict_xml.MOST_DEPTH + "</a>" * strict_xml.MOST_DEPTH)
        )


def test_a_zip_that_leaves_its_folder_or_is_too_large_writes_nothing(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../outside.json", "{}")
        archive.writestr("large.json", b"0" * 21_000_000)
    with pytest.raises(NotUnderstood, match="20 MB"):
        imported(b64encode(content.getvalue()).decode(), name="..")


def test_an_answer_of_another_form_is_not_taken():
    plan = read_plan("Seq Scan on a  (cost=0.00..1.00 rows=1 width=4)\n")
    plain = json.loads(values.to_json(plan))
    take = values.decoder(Plan, None)
    assert take(plain) == plan
    for changed in (
        {**plain, "root": None},
        {**plain, "more": 1},
        {name: value for name, value in plain.items() if name != "footer"},
        {**plain, "root": {**plain["root"], "loops": "1"}},
        {**plain, "root": {**plain["root"], "loops": True}},
        {**plain, "footer": "text"},
        [],
    ):
        with pytest.raises(values.UnexpectedValueError):
            take(changed)
