"""Which differences forbid a comparison, and how one made despite them is labelled."""

import pytest

from runs.analysis import comparability_judgement, fact_readers
from runs.analysis.comparability_judgement import WORKLOAD, Conditions, judge
from runs.analysis.comparability_rules import FACTS

XEON = {"name": "rack", "cpu_model": "Xeon", "cores": 8, "memory_bytes": 16 * 2**30}
LINUX = {"os_name": "Debian GNU/Linux 13 (trixie)", "kernel": "Linux 6.12.41-amd64"}


def setting(value, *, unit="", source="configuration file"):
    return {"setting": value, "unit": unit, "source": source}


def known(
    hardware=XEON,
    environment=LINUX,
    settings=None,
    version="16.14",
    levels=None,
    **rows,
):
    kinds = {"hardware": [hardware], "environment": [environment]}
    kinds |= {kind: [row] for kind, row in rows.items()}
    kinds = {kind: [row for row in found if row] for kind, found in kinds.items()}
    snapshots = [settings] if settings else []
    part = comparability_judgement.known(kinds, settings=snapshots, version=version)
    return Conditions((part,), levels or {})


def judged(there, here=None, **options):
    found = judge(here or known(), there, **options)
    return found.reasons, found.despite


def facts(there, here=None):
    return [each.name for each in judge(here or known(), there).differing]


FORBIDS = {
    "another processor": (known({**XEON, "cpu_model": "EPYC"}), "hardware_differs"),
    "more cores": (known({**XEON, "cores": 16}), "hardware_differs"),
    "more memory": (known({**XEON, "memory_bytes": 17 * 2**30}), "hardware_differs"),
    "another release": (
        known(environment={**LINUX, "os_name": "Debian 12"}),
        "environment_differs",
    ),
    "another kernel": (
        known(environment={**LINUX, "kernel": "Linux 6.1"}),
        "environment_differs",
    ),
    "another filesystem": (
        known(environment={**LINUX, "storage": {"filesystem": "xfs"}}),
        "environment_differs",
    ),
    "a limit of processors": (
        known(environment={**LINUX, "more": {"cpu_limit": "2"}}),
        "environment_differs",
    ),
    "assertions": (
        known(build={"configure_options": "'--enable-cassert'", "cflags": "-O2"}),
        "build_differs",
    ),
    "not optimised": (
        known(build={"configure_options": "--with-icu", "cflags": "-g -O0"}),
        "build_differs",
    ),
    "block size": (
        known(build={"configure_options": "x", "cflags": "-O2", "block_size": 32768}),
        "build_differs",
    ),
    "fsync": (known(settings={"fsync": setting("off")}), "settings_differs"),
    "commits": (
        known(settings={"synchronous_commit": setting("off")}),
        "settings_differs",
    ),
    "pages": (known(settings={"full_page_writes": setting("off")}), "settings_differs"),
    "assertions told by the server": (
        known(settings={"debug_assertions": setting("on", source="default")}),
        "build_differs",
    ),
    "query mode": (known(workload={"query_mode": "prepared"}), "workload_differs"),
    "script": (known(workload={"script": "select-only"}), "workload_differs"),
}
HERE = known(
    environment={
        **LINUX,
        "storage": {"filesystem": "ext4"},
        "more": {"cpu_limit": "none"},
    },
    build={"configure_options": "--with-icu", "cflags": "-g -O2", "block_size": 8192},
    settings={
        **{
            name: setting("on")
            for name in ("fsync", "synchronous_commit", "full_page_writes")
        },
        "shared_buffers": setting("16384", unit="8kB"),
        "debug_assertions": setting("off", source="default"),
    },
    workload={"query_mode": "simple", "script": "tpcb-like"},
)


@pytest.mark.parametrize("name", FORBIDS)
def test_what_makes_another_measurement_forbids_a_verdict_both_ways(name):
    there, code = FORBIDS[name]

    assert judge(HERE, there).reasons == (code,)
    assert judge(there, HERE).reasons == (code,)


def test_the_facts_that_differ_are_named_with_both_values():
    (found,) = judge(HERE, known(settings={"fsync": setting("off")})).differing

    assert (found.name, found.base, found.head) == ("fsync", ("on",), ("off",))


IGNORED = {
    "tools": {**LINUX, "tools": {"sysstat": "12.7.5"}},
    "limits": {**LINUX, "limits": {"open_files": 4096}},
    "a fact of a later release": {
        **LINUX,
        "numa_balancing": "1",
        "storage": {"lvm": "striped"},
    },
    "case and spaces": {**LINUX, "os_name": "debian  GNU/Linux 13 (Trixie)"},
}


@pytest.mark.parametrize("name", IGNORED)
def test_what_says_nothing_of_speed_is_ignored(name):
    here = known(
        environment={**LINUX, "tools": {"sysstat": "12.6"}, "limits": {"open_files": 1}}
    )

    assert judged(known(environment=IGNORED[name]), here) == ((), ())


def test_some_megabytes_that_a_kernel_keeps_for_itself_are_no_other_memory():
    assert judged(known({**XEON, "memory_bytes": 16 * 2**30 - 40 * 2**20})) == ((), ())


def test_devices_are_the_same_in_another_order_and_under_other_names():
    one, two = {"name": "sda", "model": "PM9A3"}, {"name": "sdb", "model": "P5510"}
    here = known({**XEON, "disks": [one, two]})
    there = known({**XEON, "disks": [{**two, "name": "sda"}, {**one, "name": "sdb"}]})

    assert judged(there, here) == ((), ())


def test_a_point_release_is_no_difference_and_a_build_of_the_kernel_warns():
    there = {"os_name": "Debian GNU/Linux 13 (trixie)", "kernel": "Linux 6.12.43-amd64"}
    ubuntu = [
        known(environment={"os_name": f"Ubuntu 22.04.{minor} LTS"}) for minor in (3, 4)
    ]

    assert judged(known(environment=there)) == ((), ("environment_differs",))
    assert facts(known(environment=there)) == ["kernel"]
    assert judged(*ubuntu)[0] == ()
    assert judged(ubuntu[0], known(environment={"os_name": "Ubuntu 24.04 LTS"}))[0]


def test_memory_of_a_server_warns():
    there = known(settings={"shared_buffers": setting("8GB", source="uploaded")})

    assert judge(HERE, there).reasons == ()
    assert "settings_differs" in judge(HERE, there).despite


def test_a_setting_is_the_same_in_whatever_unit_it_is_told():
    there = known(settings={"shared_buffers": setting("131072kB", source="uploaded")})

    assert [each.name for each in judge(HERE, there).differing] == []


def test_the_defaults_of_two_versions_are_how_they_are():
    def of(version, level, source="default"):
        return known(
            version=version, settings={"wal_level": setting(level, source=source)}
        )

    assert judged(of("18.4", "replica"), of("9.6.24", "minimal")) == ((), ())
    uploaded = (of("18.4", "replica", "uploaded"), of("9.6.24", "minimal", "uploaded"))
    assert judged(*uploaded) == ((), ())
    chosen = of("9.6.24", "minimal", "configuration file")
    assert judged(of("18.4", "replica"), chosen)[0] == ("settings_differs",)


def test_one_level_of_the_log_under_its_old_name_is_the_same():
    old = known(settings={"wal_level": setting("hot_standby")})

    assert judged(known(settings={"wal_level": setting("replica")}), old) == ((), ())


@pytest.mark.parametrize(
    ("level", "there"),
    [
        ("server", {"hardware": {**XEON, "cpu_model": "EPYC"}}),
        ("fsync", {"settings": {"fsync": setting("off")}}),
        ("bindir", {"build": {"configure_options": "x", "cflags": "-O0"}}),
        ("query_mode", {"workload": {"query_mode": "prepared"}}),
    ],
)
def test_what_the_levels_of_both_declare_is_what_is_compared(level, there):
    here = known(
        settings={"fsync": setting("on")},
        build={"configure_options": "x", "cflags": "-O2"},
        workload={"query_mode": "simple"},
        levels={level: "one"},
    )

    declared = judge(here, known(**there, levels={level: "other"}))
    undeclared = judge(here, known(**there))

    assert declared.reasons == ()
    assert len(undeclared.reasons) == 1
    assert set(undeclared.reasons) <= set(declared.despite)


@pytest.mark.parametrize(
    ("flags", "versions", "code"),
    [
        ("-Os", ("16.14", "17.6"), "despite"),
        ("-Os", ("16.14", "16.14"), "reasons"),
        ("-O0", ("16.14", "17.6"), "reasons"),
    ],
)
def test_versions_that_were_optimised_otherwise_are_compared_and_named(
    flags, versions, code
):
    here, there = (
        known(
            build={"configure_options": "x", "cflags": own}, levels={"version": version}
        )
        for own, version in zip(("-O2", flags), versions, strict=True)
    )

    found = judge(here, there)

    assert getattr(found, code) == ("build_differs",)
    assert [(each.base, each.head) for each in found.differing] == [
        (("-O2",), (flags,))
    ]


@pytest.mark.parametrize(
    ("said", "short"),
    [
        ("gcc (GCC) 4.1.2 20080704 (Red Hat 4.1.2-55)", "gcc 4.1"),
        ("gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0", "gcc 7.5"),
        ("gcc-12.2.0", "gcc 12.2"),
        ("Debian clang version 14.0.6", "Debian clang 14.0"),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", "Apple clang 15.0"),
        ("msvc-19.29.30146", "msvc 19.29"),
        ("", None),
    ],
)
def test_a_compiler_is_told_by_its_name_and_release(said, short):
    assert fact_readers.compiler(said) == short


def test_a_name_alone_counts_where_nothing_else_is_known():
    assert judged(known({"name": "b"}), known({"name": "a"}))[0] == (
        "hardware_differs",
    )
    assert judged(known({**XEON, "name": "runner 2"})) == ((), ())


def test_facts_after_one_that_does_not_count_still_count():
    renamed = known({**XEON, "name": "runner 2"}, {**LINUX, "kernel": "Linux 5.4"})

    assert judged(renamed)[0] == ("environment_differs",)

    def of(version, level, buffers):
        buffers = setting(buffers, source="configuration file")
        settings = {
            "wal_level": setting(level, source="default"),
            "shared_buffers": buffers,
        }
        return known(version=version, settings=settings)

    assert facts(of("18.4", "replica", "1GB"), of("9.6.24", "minimal", "2GB")) == [
        "shared_buffers"
    ]


def test_a_fact_is_read_from_rows_of_its_own_kind_only():
    assert judged(known(environment={**LINUX, "cpu_model": "EPYC", "cores": 16})) == (
        (),
        (),
    )


def test_what_disturbs_a_measurement_forbids_a_verdict_even_if_it_disturbs_both():
    traced, untraced = (known(workload={"syscalls": each}) for each in (True, False))

    assert judged(traced, traced)[0] == ("workload_differs",)
    assert judged(untraced, untraced) == ((), ())


def test_a_cell_without_any_conditions_is_compared_and_says_so():
    expected = ((), ("hardware_unknown", "environment_unknown"))

    assert judged(Conditions()) == judged(known(), Conditions()) == expected


def test_a_cell_whose_runs_differ_is_not_comparable_with_one_whose_runs_do_not():
    rows = {"hardware": [XEON, {**XEON, "cores": 16}], "environment": [LINUX]}
    both = Conditions((comparability_judgement.known(rows),))

    assert judged(both)[0] == ("hardware_differs",)
    assert judged(both, both)[0] == ()


def test_an_ignored_difference_is_labelled():
    other = known({**XEON, "cores": 16}, {**LINUX, "kernel": "Linux 5.4"})
    judgement = judge(known(), other, {"hardware_differs"})

    assert judgement.reasons == ("environment_differs",)
    assert judgement.despite == ("hardware_differs",)


def test_what_a_side_does_not_tell_is_no_difference_but_is_told():
    assert judged(known(environment=None)) == ((), ("environment_unknown",))
    assert judged(known(hardware=None)) == ((), ("hardware_unknown",))
    assert judged(known(settings={"fsync": setting("on")})) == (
        (),
        ("settings_unknown",),
    )


def test_a_part_that_many_cells_share_is_declared_by_the_levels_of_each_cell():
    here, there = (known(workload={"scale": scale}).parts for scale in (100, 200))

    declared = judge(
        Conditions(here, {"scale": 100}), Conditions(there, {"scale": 200})
    )
    undeclared = judge(Conditions(here), Conditions(there))

    assert [each.is_declared for each in declared.differing] == [True]
    assert [each.is_declared for each in undeclared.differing] == [False]
    assert undeclared.reasons == declared.despite == ("workload_differs",)


class Asked(dict):
    """A row that remembers which of its names were read."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def get(self, name, default=None):
        self.names.add(name)
        return default


def test_facts_of_a_workload_are_read_from_nothing_but_their_levels():
    row = Asked()

    for fact in FACTS:
        if fact.kind == "workload":
            fact.read(row)

    assert row.names
    assert row.names <= WORKLOAD
