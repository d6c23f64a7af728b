"""Who may ask how often."""

import pytest

from deniable.collect.limits import Limiter, address_of, network_of


def test_an_address_is_counted_from_the_right_by_our_own_proxies() -> None:
    forged = ["1.1.1.1, 2.2.2.2", "3.3.3.3"]
    assert address_of("10.0.0.9", forged, 0) == "10.0.0.9"
    assert address_of("10.0.0.9", forged, 1) == "3.3.3.3"
    assert address_of("10.0.0.9", forged, 2) == "2.2.2.2"
    assert address_of("10.0.0.9", [], 1) == "10.0.0.9"
    assert address_of("10.0.0.9", ["1.1.1.1"], 2) == "10.0.0.9"


def test_counts_begin_anew_each_minute_and_the_key_each_day() -> None:
    limiter = Limiter(2)
    assert [limiter.allows("a", 10.0) for _ in range(3)] == [True, True, False]
    assert limiter.allows("b", 10.0)
    assert limiter.allows("a", 70.0)
    key = limiter._key
    assert limiter.allows("a", 86_401.0)
    assert limiter._key != key
    assert b"a" not in limiter._counts


def test_all_addresses_of_one_network_are_counted_together() -> None:
    limiter = Limiter(2)
    assert [limiter.allows(f"2001:db8::{i}", 1.0) for i in range(3)] == [True, True, False]
    assert not limiter.allows("2001:db8:0:0:ffff::1%eth0", 1.0)
    assert limiter.allows("2001:db8:0:1::1", 1.0)
    assert [limiter.allows("::ffff:192.0.2.7", 1.0), limiter.allows("192.0.2.7", 1.0)] == [True] * 2
    assert not limiter.allows("192.0.2.7", 1.0)


@pytest.mark.parametrize(
    ("written", "network"),
    [
        ("2001:DB8:0:0:1:2:3:4", "2001:db8::/64"),
        ("[2001:db8::7]", "2001:db8::/64"),
        ("[2001:db8::7]:4711", "2001:db8::/64"),
        ('"[2001:db8::7]:4711"', "2001:db8::/64"),
        ("[::ffff:192.0.2.7]:4711", "192.0.2.7"),
        ("::FFFF:c000:207", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("[", "["),
    ],
)
def test_addresses_are_counted_however_they_are_written(written: str, network: str) -> None:
    assert network_of(address_of("10.0.0.9", [f"6.6.6.6, {written}"], 1)) == network
