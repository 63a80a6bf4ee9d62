"""Which network addresses a workflow may reach: none of our own networks unless configured. Knows nothing of HTTP."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

import msgspec

Resolver = Callable[[str, int], Sequence[str]]
"""All addresses of a host as texts. May block; raises OSError when the name has none."""

Address = IPv4Address | IPv6Address

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE: Final = IPv6Network("::/96")


class AddressForbiddenError(Exception):
    """The host has an address that workflows may not reach. The text names the host and the reason."""


class AddressRules(msgspec.Struct, frozen=True):
    """`allow_private` opens private, loopback and shared (CGNAT) networks, never link-local ones, where clouds keep

    credentials. `allowed_hosts` (lower case) may have any address.
    """

    allow_private: bool = False
    allowed_hosts: tuple[str, ...] = ()

    def check(self, host: str, addresses: Sequence[str]) -> None:
        """Raise AddressForbiddenError if any address is out of bounds: a mixed answer is a trick, not a choice."""
        if host.lower().rstrip(".") in self.allowed_hosts:
            return
        for text in addresses:
            reason = self._fault(ip_address(text))
            if reason is not None:
                raise AddressForbiddenError(f"{host} has a {reason} address, which workflows may not reach")

    def _fault(self, address: Address) -> str | None:
        inner = _embedded(address)
        if inner is not None:
            return self._fault(inner)
        if address.is_multicast:
            return "multicast"
        if address.is_unspecified:
            return "unspecified"
        if address.is_link_local:
            return "link-local"
        if self.allow_private or _public(address):
            return None
        return "loopback" if address.is_loopback else "private"


def _public(address: Address) -> bool:
    # Python counts all of IPv6 as global that no registry excludes; only 2000::/3 has been given out.
    return address.is_global and not address.is_reserved and (address.version == 4 or address in _GLOBAL_UNICAST)


def _embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that a packet to this IPv6 address ends up at."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    # ::1 and :: are of this form too, and are judged as what they are.
    compatible = address in _V4_COMPATIBLE and int(address) > 1
    return IPv4Address(int(address) & 0xFFFF_FFFF) if compatible or address in _NAT64 else None


def system_resolver(host: str, port: int) -> Sequence[str]:
    """What the operating system answers, each address once, in its order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
