"""Instructions by function, from what callgrind_annotate of valgrind 3.19 printed."""

from runs.execution.evidence import instructions

PRINTED = """--------------------------------------------------------------------------------
Ir
--------------------------------------------------------------------------------
{total} (100.0%)  PROGRAM TOTALS

Ir                  file:function
--------------------------------------------------------------------------------
{scan} (10.53%)  ???:heap_getnext [/lab/18.0/bin/postgres]
  {again} ( 1.86%)  ./elf/../sysdeps/generic/dl-new-hash.h:_dl_lookup_symbol_x
      1,200 ( 0.01%)  ???:ExecProcNode'2 [/lab/18.0/bin/postgres]
        300 ( 0.01%)  ???:ExecProcNode [/lab/18.0/bin/postgres]
        220 ( 0.01%)  ???:scanRTEForColumn.isra.3 [/lab/18.0/bin/postgres]
"""


def printed(**figures):
    return PRINTED.format(**{name: f"{n:,}" for name, n in figures.items()})


def test_functions_are_read_with_the_total_and_recursion_added_up():
    found = instructions.functions(printed(total=39858041, scan=4198757, again=740450))
    assert found == {
        "": 39858041,
        "heap_getnext": 4198757,
        "_dl_lookup_symbol_x": 740450,
        "ExecProcNode": 1500,
        "scanRTEForColumn": 220,
    }


def test_what_only_the_start_takes_is_no_part_of_a_transaction():
    few, many, twice = (
        instructions.functions(printed(total=total, scan=scan, again=740_450))
        for total, scan in (
            (20_000_000, 200_000),
            (25_000_000, 2_700_000),
            (28_000_000, 5_100_000),
        )
    )
    assert instructions.differences(few, many, twice) == [
        ("", 50_000, 100_000),
        ("heap_getnext", 40_000, 50_000),
    ]


def test_a_statement_becomes_one_line_that_ends_once():
    assert instructions.line_of("SELECT 1\n  FROM t ; \n") == "SELECT 1 FROM t;"
