"""Tools whose output nothing here reads, and which a refusal names."""

from runs.patterns import re

# Tools without an adapter, by a line that only they print.
TOOLS = (
    ("YCSB", re.compile(r"^\[OVERALL\], Throughput\(ops/sec\),", re.MULTILINE)),
    ("BenchmarkSQL", re.compile(r"Measured tpm(?:C|TOTAL) ")),
    ("tpcc-mysql", re.compile(r"^<TpmC>$", re.MULTILINE)),
    ("DBT-2", re.compile(r"new-order transactions per minute \(NOTPM\)")),
    ("k6", re.compile(r"^ {0,20}http_reqs\.{3}", re.MULTILINE)),
    ("wrk", re.compile(r"^Running \d{1,9}[smh] test @ ", re.MULTILINE)),
    ("JMeter", re.compile(r"^summary [+=] {1,20}\d{1,12} in ", re.MULTILINE)),
    (
        "JMH",
        re.compile(
            r"^Benchmark\s{1,200}(?:\(\w{1,80}\)\s{1,80}){0,9}Mode\s{1,20}Cnt",
            re.MULTILINE,
        ),
    ),
    ("Criterion", re.compile(r"^.{0,200}\btime: {1,9}\[[\d.]{1,20} ", re.MULTILINE)),
    ("pgreplay", re.compile(r"^Speed factor for replay:", re.MULTILINE)),
)


def name_of(text: str) -> str:
    """The tool that printed a text; empty for any other."""
    return next((name for name, line in TOOLS if line.search(text)), "")
