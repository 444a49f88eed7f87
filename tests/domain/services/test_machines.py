"""Changes of a machine: told once, with what is another than before."""

from dataclasses import replace

import pytest

from runs.execution.machine import Disk, Hardware, OperatingSystem
from runs.services import machines
from tests import factories

pytestmark = pytest.mark.django_db

HARDWARE = Hardware(
    cpu_model="AMD EPYC 7571",
    sockets=1,
    cores=16,
    threads=32,
    memory_bytes=64 * 2**30,
    virtualization="",
    product="",
    disks=(Disk("sda", 10**12, False, "fast"),),
)
SYSTEM = OperatingSystem(
    name="Debian 12",
    kernel="Linux 6.1",
    architecture="x86_64",
    governor="powersave",
    kernel_settings={"vm.swappiness": "60"},
)


@pytest.fixture
def server():
    server = factories.server()
    server.hardware = server.environment = None
    server.save()
    return server


def look(server, hardware=HARDWARE, system=SYSTEM):
    machines.keep(server=server, hardware=hardware, system=system)
    server.save()
    server.refresh_from_db()


def told(server):
    return [(event.code, event.message) for event in server.events.order_by("pk")]


def test_the_first_look_and_an_unchanged_machine_tell_nothing(server):
    look(server)
    look(server)
    assert told(server) == []
    assert server.hardware.threads == 32
    assert server.environment.facts["kernel_settings"] == {"vm.swappiness": "60"}


def test_a_setting_that_somebody_changed_is_told_with_both_values(server):
    look(server)
    hardware = server.hardware
    look(server, system=replace(SYSTEM, kernel_settings={"vm.swappiness": "1"}))
    assert told(server) == [("environment_changed", "kernel_settings.vm.swappiness: 60 → 1")]
    assert server.hardware == hardware


def test_more_memory_and_another_disk_are_told(server):
    look(server)
    disks = (Disk("sdb", 10**12, False, "fast"), Disk("sda", 2 * 10**12, True, "slow"))
    look(server, hardware=replace(HARDWARE, memory_bytes=128 * 2**30, disks=disks))
    ((code, message),) = told(server)
    assert code == "hardware_changed"
    assert f"memory_bytes: {64 * 2**30} → {128 * 2**30}" in message
    assert "model slow" in message


def test_what_was_not_known_before_is_no_change(server):
    look(server)
    look(server, system=replace(SYSTEM, tools={"sysstat": "12.6.1"}))
    assert told(server) == []
    assert server.environment.facts["tools"] == {"sysstat": "12.6.1"}
