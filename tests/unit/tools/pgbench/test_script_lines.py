"""A command's number in pgbench's messages is the line at which somebody wrote it."""

from runs.tools.pgbench.script_check import command_lines, line_of_command

SCRIPT = r"""-- a comment; with a semicolon
\set aid random(1, 10)

BEGIN; SELECT ';', "a;b",
  (SELECT 1);
SELECT 1 \; SELECT 2;
SELECT 3 AS x \gset
DO $body$ BEGIN PERFORM 1; END $body$;
\set b :x \
  + 1
/* ; */ END"""


def test_each_command_has_the_line_at_which_it_begins():
    assert list(command_lines(SCRIPT)) == [2, 4, 4, 6, 7, 8, 9, 11]
    assert line_of_command(SCRIPT, 3) == 6
    assert line_of_command(SCRIPT, 99) == 0
