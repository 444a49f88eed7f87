"""Which tool has printed a text that nobody names."""

import pytest

from runs.tools import reader, registry
from runs.tools.adapter import Reading, UnreadableOutput
from tests.unit.tools.pgbench.samples import all_samples
from tests.unit.tools.reading import samples

OTHERS = [adapter.name for adapter in registry.every() if adapter.name != "pgbench"]


def outcome(tool, text):
    try:
        return reader.read(registry.find(tool), {"stdout": text})
    except UnreadableOutput as refused:
        return refused


@pytest.mark.parametrize("tool", OTHERS)
def test_whatever_an_adapter_reads_is_recognised(tool):
    texts = {name: content.decode() for name, content in samples(tool).items()}
    read = {name for name in texts if isinstance(outcome(tool, texts[name]), Reading)}

    assert read
    assert {name: reader.tool_of({"stdout": texts[name]}) for name in read} == (
        dict.fromkeys(read, tool)
    )


def test_each_run_of_pgbench_is_recognised_from_9_2_on():
    runs = [sample for sample in all_samples() if sample.stdout]

    assert len(runs) > 50
    unknown = [
        run.name
        for run in runs
        if isinstance(outcome("pgbench", run.stdout), Reading)
        and reader.tool_of({"stdout": run.stdout}) != "pgbench"
    ]
    assert unknown == []


def test_a_form_that_a_tools_reader_refuses_is_told_apart_from_any_text():
    text = samples("fio")["fsync8k_text.txt"].decode()

    assert reader.tool_of({"stdout": text}) == "fio"
    assert reader.tool_of({"stdout": "Nothing that a tool prints.\n"}) == ""
    assert reader.tool_of({"stdout": ""}) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Timing is on.\n count \n-------\n   100\n(1 row)\n\nTime: 12.345 ms\n",
        "-----+-----\n 1   | 2\n",
        "1\n2\n3\n",
        "a.c:1:2: error: expected ';'\n1 error generated.\n",
        "make: *** [all] Error 2\n",
        "Value 3\nScript started\nChanged a\n",
        "2025-01-01 00:00:01 UTC [2] LOG:  checkpoint complete: wrote 100 buffers\n",
        " Seq Scan on t  (cost=0.00..1.00 rows=1 width=4)\n Execution Time: 0.05 ms\n",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.1s\n",
        "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.2 s, 895 MB/s\n",
        '[{"name": "x", "value": 3}]\n',
    ],
)
def test_what_other_programs_print_is_of_no_tool(text):
    assert reader.tool_of({"stdout": text}) == ""
