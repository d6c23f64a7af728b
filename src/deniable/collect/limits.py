"""Rate limit by address, counted in memory under a key that changes daily."""

import hashlib
import ipaddress
import re
from collections.abc import Sequence

import numpy as np

from deniable.randomness import SystemRandomness

_WITH_PORT = re.compile(r'^"?\[(.*)\](?::\d*)?"?$|^([\d.]+):\d*$')

_WINDOW = 60.0
"""Length of the window, in seconds."""


def address_of(peer: str, forwarded: Sequence[str], hops: int) -> str:
    """Return the peer's address, or the one that the outermost trusted proxy reports."""
    listed = [part.strip() for line in forwarded for part in line.split(",") if part.strip()]
    return listed[-hops] if 0 < hops <= len(listed) else peer


def network_of(address: str) -> str:
    """Return the counted part of an address: the first 64 bits of IPv6, since one client has all of
    such a network; without the port that some proxies append.

    >>> network_of("2001:db8::1"), network_of("192.0.2.7:4711"), network_of("::ffff:192.0.2.7")
    ('2001:db8::/64', '192.0.2.7', '192.0.2.7')
    """
    plain = _WITH_PORT.sub(r"\1\2", address)
    try:
        read = ipaddress.IPv6Address(plain.partition("%")[0])
    except ValueError:  # IPv4, or the text of a proxy
        return plain
    return str(read.ipv4_mapped or ipaddress.IPv6Network((int(read) >> 64 << 64, 64)))


class Limiter:
    """Most requests per minute of an address."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        self._counts: dict[bytes, int] = {}
        self._window = self._day = -1
        self._key = b""

    def allows(self, address: str, now: float) -> bool:
        """Count a request, and return whether it is within the limit."""
        if (day := int(now // 86_400)) != self._day:
            self._day, self._key = day, SystemRandomness().bits(np.uint64, 4).tobytes()
        if (window := int(now // _WINDOW)) != self._window:
            self._window = window
            self._counts.clear()
        name = hashlib.blake2b(network_of(address).encode(), key=self._key, digest_size=16).digest()
        self._counts[name] = count = self._counts.get(name, 0) + 1
        return count <= self._most
