"""pgbench: its command lines, and its output."""

from runs.tools.pgbench.command import (
    Connection,
    Log,
    Script,
    benchmark,
    initialise,
    once,
)
from runs.tools.pgbench.dialect import adapt_script
from runs.tools.pgbench.parser import parse
from runs.tools.pgbench.result import (
    Expected,
    PgbenchResult,
    Problem,
    ProgressPoint,
    ScriptResult,
    StatementResult,
)
from runs.tools.pgbench.versions import UnsupportedByToolError, version_text
