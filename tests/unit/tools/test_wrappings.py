"""What others put around a tool's output changes no figure, whatever the tool."""

import html
import json
import re

import pytest

from runs.tools import reader, registry
from runs.tools.adapter import UnreadableOutput
from runs.wording import put
from tests import patterns
from tests.unit.tools.pgbench.samples import sample as pgbench_sample
from tests.unit.tools.reading import sample

PRINTED = {
    "sysbench": "oltp_read_write.txt",
    "go_tpc": "tpcc_run_plain.txt",
    "hammerdb": "timed.log",
    "fio": "seqwrite_json.txt",
    "pg_test_fsync": "default.txt",
    "pg_test_timing": "default.txt",
    "google_benchmark": "plain.json",
}


def text_of(tool):
    if tool == "pgbench":
        return pgbench_sample("18.6/a_tpcb").stdout
    return sample(tool, PRINTED[tool]).decode()


def each_line(prefix):
    """Before each line its prefix, with a time that goes on."""

    def wrapped(text):
        lines = text.splitlines()
        return "".join(
            prefix.replace("%S", f"{place % 60:02d}") + f"{line}\n"
            for place, line in enumerate(lines)
        )

    return wrapped


def as_json(text, document):
    return "".join(f"{json.dumps(document(line))}\n" for line in text.splitlines())


def quoted_if_needed(line):
    return '"' + line.replace('"', '""') + '"' if "," in line or '"' in line else line


WRAPPINGS = {
    "GitHub": each_line("2025-03-04T05:06:%S.1234567Z "),
    "gh run view --log": each_line("bench\tRun pgbench\t2025-03-04T05:06:%S.1234567Z "),
    "GitLab": each_line("2025-03-04T05:06:%S.123456Z 01O "),
    "Jenkins": each_line("[2025-03-04T05:06:%S.123Z] "),
    "Jenkins, hours": each_line("05:06:%S "),
    "TeamCity": each_line("[05:06:%S] : "),
    "kubectl --timestamps": each_line("2025-03-04T05:06:%S.123456789Z "),
    "CRI": each_line("2025-03-04T05:06:%S.123456789+09:00 stdout F "),
    "kubectl --prefix": each_line("[pod/bench-7d9/pgbench] "),
    "compose": each_line("bench-1  | "),
    "compose with times": each_line("bench-1  | 2025-03-04T05:06:%S.123456789Z "),
    "Fabric": each_line("[localhost] out: "),
    "journal": each_line("Mar 04 05:06:%S db1 pgbench[4711]: "),
    "ts": each_line("Mar  4 05:06:%S "),
    "Python's logging": each_line("2025-03-04 05:06:%S,123 INFO: "),
    "Airflow": each_line("[2025-03-04, 05:06:%S UTC] {subprocess.py:93} INFO - "),
    "a mail": each_line("> "),
    "a mail twice": each_line("> > "),
    "an unknown word": each_line("node7: "),
    "colours": each_line("\x1b[36;1m\x1b[0m"),
    "Buildkite": each_line("\x1b_bk;t=1741064767%S\x07"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "mark": lambda text: f"\ufeff{text}",
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without mark": lambda text: text.encode("utf-16-le"),
    "script(1)": lambda text: (
        'Script started on 2025-03-04 05:06:07+00:00 [TERM="xterm-256color"]\r\n\x1b[?2004l\r'
        + text.replace("\n", "\r\n")
        + "\x1b[?2004h\r\nScript done on 2025-03-04 05:06:40+00:00\r\n"
    ),
    "four blanks": each_line("    "),
    "a tab": each_line("\t"),
    "Vagrant": each_line("    default: "),
    "Terraform": each_line("null_resource.bench (remote-exec): "),
    "stern": each_line("bench-7d9 pgbench "),
    "comments": each_line("# "),
    "comments of a script": each_line("  #   "),
    "comments of SQL": each_line("-- "),
    "Loki, in tabs": each_line("2025-03-04 05:06:%S.123\tbench-x7k2p\tpgbench\t"),
    "a difference": each_line("+"),
    "blanks behind": lambda text: text.replace("\n", "   \n"),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "CR alone": lambda text: text.replace("\n", "\r"),
    "entities": lambda text: f"<pre>\n{html.escape(text, quote=False)}</pre>\n",
    "Docker's JSON": lambda text: as_json(
        text, lambda line: {"log": f"{line}\n", "stream": "stdout"}
    ),
    "JSON of a logger": lambda text: as_json(
        text, lambda line: {"level": "info", "msg": line}
    ),
    "Ansible, lines": lambda text: (
        'ok: [db1] => {\n    "msg": [\n'
        + ",\n".join(f"        {json.dumps(line)}" for line in text.splitlines())
        + "\n    ]\n}\n"
    ),
    "Ansible, a string": lambda text: (
        f'ok: [db1] => {{\n    "stdout": {json.dumps(text)}\n}}\n'
    ),
    "klog": each_line("I0304 05:06:%S.123456       1 main.go:12] "),
    "Spring": each_line(
        "2025-03-04T05:06:%S.123Z  INFO 7 --- [           main] c.e.bench.Runner     : "
    ),
    "a test of NixOS": each_line("client # [   10.1234%S] pgbench[812]: "),
    "BuildKit": each_line("#12 1.2%S "),
    "seconds": each_line("17410647%S.123456 "),
    "logfmt": lambda text: "".join(
        f'time="2025-03-04T05:06:07Z" level=info msg={json.dumps(line)}\n'
        for line in text.splitlines()
    ),
    "numbers": lambda text: "".join(
        f"{place:6d}\t{line}\n" for place, line in enumerate(text.splitlines(), start=1)
    ),
    "CSV of a log": lambda text: (
        "timestamp,message\n"
        + "".join(
            f"1741064767{place},{quoted_if_needed(line)}\n"
            for place, line in enumerate(text.splitlines())
        )
    ),
    "Google's log": lambda text: "".join(
        f"---\ninsertId: a\ntextPayload: {json.dumps(line)}\n"
        for line in text.splitlines()
    ),
    "Amazon's log": lambda text: json.dumps(
        {"events": [{"timestamp": 1, "message": line} for line in text.splitlines()]},
        indent=4,
    ),
    "Loki's API, newest first": lambda text: json.dumps(
        {
            "result": [
                {
                    "values": [
                        [f"{i + 10**18}", x] for i, x in enumerate(text.splitlines())
                    ][::-1]
                }
            ]
        }
    ),
    "JUnit": lambda text: (
        f"<testcase><system-out><![CDATA[{text}]]></system-out></testcase>"
    ),
    "a box": lambda text: (
        "┌┐\n" + "".join(f"│ {x:90} │\n" for x in text.splitlines()) + "└┘\n"
    ),
    "a list of Python": lambda text: f"{text.splitlines()!r}\n",
    "a page": lambda text: (
        f"<html><body><pre>{html.escape(text)}</pre></body></html>\n"
    ),
    "lines of a page": lambda text: "".join(
        f"<b>05:06:07</b> {html.escape(line)}<br>\n" for line in text.splitlines()
    ),
    "JSON of a container": lambda text: "".join(
        f"bench-1  | {line}\n"
        for line in json.dumps({"stdout": text}, indent=2).splitlines()
    ),
    "a shell's quotes": lambda text: "echo '" + text.replace("'", "'\\''") + "'\n",
    "set -x": lambda text: (
        'result="' + re.sub(r'([\\"$`])', r"\\\1", text) + '"\n+ date\n'
    ),
    "logfmt, quoted where needed": lambda text: "".join(
        f"level=info msg={json.dumps(line) if ' ' in line or not line else line} pod=x\n"
        for line in text.splitlines()
    ),
    "a prompt": lambda text: f"[postgres@db1 ~]$ {text}",
    "a prompt of PowerShell": lambda text: f"PS C:\\bench> {text}",
    "GitLab's sections": lambda text: (
        "section_start:1741064767:step_script\r\x1b[0K\x1b[36;1mExecuting\x1b[0;m\n"
        f"{text}section_end:1741064777:step_script\r\x1b[0K\n\x1b[32;1mJob succeeded\x1b[0;m\n"
    ),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_wrapping_changes_no_figure(wrapping):
    differing = []
    for tool in ("pgbench", *PRINTED):
        adapter, text = registry.find(tool), text_of(tool)
        plain = reader.read(adapter, {"stdout": text})
        read = _outcome(adapter, WRAPPINGS[wrapping](text))
        if read != (plain.measurements, plain.series, plain.levels, plain.tool_version):
            differing.append((tool, read))

    assert plain.notes == ()
    assert differing == []


def _outcome(adapter, text):
    try:
        read = reader.read(adapter, {"stdout": text})
    except UnreadableOutput as refused:
        return refused.message
    return read.measurements, read.series, read.levels, read.tool_version


@pytest.mark.parametrize("tool", ["pgbench", *PRINTED])
def test_what_another_tool_printed_beside_changes_no_figure(tool):
    adapter, own = registry.find(tool), text_of(tool).rstrip("\n")
    alone = _outcome(adapter, f"{own}\n")
    others = [
        text_of(each).rstrip("\n") for each in ("pgbench", *PRINTED) if each != tool
    ]
    both = [
        text for other in others for text in (f"{own}\n{other}\n", f"{other}\n{own}\n")
    ]

    assert [text[:80] for text in both if _outcome(adapter, text) != alone] == []


def test_the_line_is_named_by_which_a_second_run_is_there():
    lines = {}
    for tool in ("pgbench", *PRINTED.keys() - {"hammerdb"}):  # it prints a result twice
        text = text_of(tool).rstrip("\n") + "\n"
        (reason,) = reader.read(registry.find(tool), {"stdout": text * 2}).reasons
        place = int(reason.message.rpartition(" line ")[2].rstrip("."))
        lines[tool] = len(text.splitlines()) < place <= 2 * len(text.splitlines())

    assert [tool for tool, is_right in lines.items() if not is_right] == []


def test_a_note_says_what_was_left_out():
    text = WRAPPINGS["Fabric"](text_of("pgbench"))

    (note,) = reader.read(registry.find("pgbench"), {"stdout": text}).notes

    assert (
        note.message == "Most lines began with “[localhost] out:”, which was left out."
    )


SERVER_LINES = [
    "2025-03-04 05:06:07.123 UTC [1] LOG:  starting PostgreSQL 18.0",
    "2025-03-04 05:06:07.456 UTC [27] LOG:  checkpoint starting: time",
    "2025-03-04 05:06:08.123 UTC [31] FATAL:  the database system is starting up",
    "2025-03-04 05:06:09.123 UTC [40] STATEMENT:  select tps = 12.5",
    "",
] * 40
# How several print into one log.
SHARED = {
    "compose": "{0}-1  | ",
    "compose 1": "{0}_1 | ",
    "compose with times": "{0}-1  | 2025-03-04T05:06:07.123456789Z ",
    "honcho": "05:06:07 {0}.1   | ",
    "kubectl --prefix": "[pod/{0}-7d9/{0}] ",
    "concurrently": "[{0}] ",
    "gh run view --log": "bench\tRun {0}\t2025-03-04T05:06:07.1234567Z ",
}


def shared(prefix, lines_by_name):
    """The lines of all in turn, as they come from several at once."""
    rows = [
        (place / len(lines), prefix.format(name) + line)
        for name, lines in lines_by_name.items()
        for place, line in enumerate(lines)
    ]
    log = "".join(f"{line}\n" for _place, line in sorted(rows, key=lambda row: row[0]))
    return f"Attaching to {', '.join(lines_by_name)}\n{log}bench-1 exited with code 0\n"


@pytest.mark.parametrize("log", SHARED)
def test_a_server_that_prints_into_the_same_log_changes_no_figure(log):
    differing = []
    for tool in ("pgbench", *PRINTED):
        adapter, text = registry.find(tool), text_of(tool)
        lines = {"db": SERVER_LINES, "bench": text.splitlines()}
        if _outcome(adapter, shared(SHARED[log], lines)) != _outcome(adapter, text):
            differing.append(tool)

    assert differing == []


def test_a_note_says_whose_lines_were_read():
    lines = {"db": SERVER_LINES, "bench": text_of("pgbench").splitlines()}
    text = shared(SHARED["compose"], lines)

    (note,) = reader.read(registry.find("pgbench"), {"stdout": text}).notes
    assert note.message == (
        "The lines of “bench-1” were read alone: others print into the same log."
    )
    assert reader.tool_of({"stdout": text}) == "pgbench"


@pytest.mark.parametrize("share", [1, 4])
@pytest.mark.parametrize("log", ["compose", "concurrently", "gh run view --log"])
def test_of_two_results_in_one_log_none_is_picked(log, share):
    """Also where one of them has most of the lines."""
    text = text_of("pgbench").splitlines()
    lines = {"old": text, "new": [*["progress: nothing"] * len(text) * share, *text]}

    reading = reader.read(
        registry.find("pgbench"), {"stdout": shared(SHARED[log], lines)}
    )

    assert reading.status == "failed"
    assert [reason.code for reason in reading.reasons] == ["several_results"]
    assert "old" in reading.reasons[0].message
    assert "new" in reading.reasons[0].message


PATTERNS_IN_COMMANDS = [
    "grep -E '^[A-Z]+' words",
    "grep '^[[:alpha:]]x' words",
    "rg '^[^#]' words",
    "awk '/^[=>]/' words",
    "sed 's/^[\\t]*//' words",
]


def test_a_regular_expression_in_a_command_is_no_escape_sequence():
    results = [
        {"command": command, "mean": 1.0, "median": 1.0}
        for command in PATTERNS_IN_COMMANDS
    ]
    text = json.dumps({"results": results}, ensure_ascii=False)

    found, *_rest = _outcome(registry.find("hyperfine"), text)

    assert [value.title.rpartition(": ")[0] for value in found] == PATTERNS_IN_COMMANDS


@pytest.mark.parametrize("escape", ["^[[36;1m", "^[[0m", "^[[K", "^[[?25l", "^[[m"])
def test_an_escape_sequence_written_in_letters_is_left_out(escape):
    text = text_of("pgbench")

    assert _outcome(registry.find("pgbench"), each_line(escape)(text)) == _outcome(
        registry.find("pgbench"), text
    )


@pytest.mark.parametrize(
    "mark", ["Prefetch", "pre_fetch", "PreparedStatement", "pre-x"]
)
def test_a_template_is_no_mark_of_a_page(mark):
    """Names of C++'s templates, of which `<pre>` alone would be HTML."""
    names = [f"BM_Scan<{mark}>/8", "BM_Scan<Direct>/8"]
    rows = [
        {"name": name, "real_time": time + 1.0, "time_unit": "ms"}
        for time, name in enumerate(names)
    ]
    text = json.dumps({"context": {"num_cpus": 2}, "benchmarks": rows})

    found, *_rest = _outcome(registry.find("google_benchmark"), text)

    assert [value.title.rpartition(": ")[0] for value in found] == names


@pytest.mark.parametrize("tag", ["<pre>", '<PRE class="log">', "<pre\n id=a>"])
def test_a_preformatted_text_is_one_of_a_page(tag):
    text = text_of("pgbench")
    page = f"<html><body>{tag}{html.escape(text)}</{tag[1:4]}></body></html>\n"

    assert _outcome(registry.find("pgbench"), page) == _outcome(
        registry.find("pgbench"), text
    )


@pytest.mark.parametrize("tool", PRINTED)
def test_the_tool_that_wrote_it_is_named(tool):
    with pytest.raises(UnreadableOutput) as refused:
        reader.read(registry.find("pgbench"), {"stdout": text_of(tool)})

    assert refused.value.code == "other_tool"
    assert f"--tool {tool}" in put(refused.value.remedy)


@pytest.mark.parametrize("tool", ["pgbench", *PRINTED])
def test_a_page_of_a_proxy_is_named(tool):
    page = "<!DOCTYPE html>\n<html>\n <body>502 Bad Gateway</body>\n</html>\n"

    with pytest.raises(UnreadableOutput) as refused:
        reader.read(registry.find(tool), {"stdout": page})

    assert refused.value.code == "web_page"


def test_decimal_commas_are_named():
    text = "Durchschnittliche Zeit pro Schleife: 3,62 ns\n"

    with pytest.raises(UnreadableOutput) as refused:
        reader.read(registry.find("pgbench"), {"stdout": text})

    assert "LC_ALL=C" in put(refused.value.remedy)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "a", "> ", "\x1b[", "\r\r\r", " " * 5000, "a b " * 9999]
)
def test_any_text_ends_in_a_reading_or_the_one_error(text):
    for adapter in registry.every():
        _outcome(adapter, text)


@pytest.mark.parametrize(
    "unit",
    [
        "\n",
        "a\n",
        "{}\n",
        ' {"a":1}      \n',
        "<pre>",
        "<pre>a</PRE>",
        "'\\n\\n',   \n",
        "tps = 1.0      \n",
        "progress: 1 s\n  ",
        "2026-01-01 10:00:00 \n",
        "job[1] | a = 1.0\n",
        "db-1 | a = 1.0\n",
        "a | b\nb | b\n",
        "[a] [a] \n",
    ],
)
def test_a_long_text_of_anything_is_read_at_once(unit):
    """A hundred times what a tool prints; what is not linear takes minutes."""
    text = (unit * 400_000)[:400_000]

    seconds = patterns.min_of(lambda: _outcome(registry.find("pgbench"), text), 1)

    assert seconds < 1


def test_an_indented_text_is_not_pgbench():
    with pytest.raises(UnreadableOutput):
        reader.read(
            registry.find("pgbench"), {"stdout": 'Traceback:\n  File "x", line 1\n'}
        )
