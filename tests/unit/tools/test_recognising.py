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
