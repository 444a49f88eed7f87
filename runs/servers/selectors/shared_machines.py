"""Which servers are one machine."""

from collections.abc import Collection

from django.db.models import Count, Q, QuerySet

from runs.models import Machine, Server


def add_twins(server_ids: Collection[int]) -> set[int]:
    """These servers, and all other registrations of their machines. One query, if there are any."""
    if not server_ids:
        return set()
    twins = Server.objects.filter(machine__servers__in=server_ids)
    return {*server_ids, *twins.values_list("pk", flat=True)}


def twins_of(server: Server) -> QuerySet[Server]:
    """The other registrations of a server's machine, by name."""
    if server.machine_id is None:
        return Server.objects.none()
    return (
        Server.objects.filter(machine=server.machine_id)
        .exclude(pk=server.pk)
        .order_by("name")
    )


def alike(server: Server) -> QuerySet[Server]:
    """Servers that have an id in common with this one and measure at the same time, by name.

    Copies of a machine, and those of which a person said that they are machines of their own.
    """
    ids = Q()
    for name in ("machine_id", "boot_id"):
        if server.identity.get(name):
            ids |= Q(**{f"identity__{name}": server.identity[name]})
    if not ids:
        return Server.objects.none()
    others = Server.objects.filter(ids).exclude(pk=server.pk)
    if server.machine_id is not None:
        others = others.exclude(machine=server.machine_id)
    return others.order_by("name")


def find_by_machine_id(server: Server) -> QuerySet[Server]:
    """Other servers with the machine-id of this one, none of them set apart."""
    machine_id = server.identity.get("machine_id")
    if not machine_id:
        return Server.objects.none()
    others = Server.objects.filter(identity__machine_id=machine_id, is_apart=False)
    return others.exclude(pk=server.pk)


def find_unshared_machines() -> list[Machine]:
    """Machines that one server or none has."""
    return list(Machine.objects.annotate(number=Count("servers")).filter(number__lt=2))
