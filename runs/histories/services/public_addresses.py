"""Which addresses webhooks may reach."""

import ipaddress

NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(text: str) -> bool:
    """Whether an address is a public internet address: not loopback, private, multicast ..."""
    address = _embedded(ipaddress.ip_address(text.partition("%")[0]))
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False  # fec0::/10, which Python takes for global
    return address.is_global and not address.is_multicast and not address.is_reserved


def _embedded(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
