import pytest

from deniable.errors import InputError
from deniable.ledger import Event, Spending, stored_releases

BEGUN = {
    "what": "share",
    "spending": Spending(1.0).to_plain(),
    "token": "ab",
    "traceless": True,
}


def test_a_digest_is_of_all_that_came_before():
    first = Event(1, "t", "opened", "")
    second = Event(2, "t", "budget", "p", {"nats": 1.0}, first.digest)
    assert second.digest != Event(2, "t", "budget", "p", {"nats": 1.0}, "other").digest
    assert second.digest != Event(2, "t", "budget", "p", {"nats": 1.5}, first.digest).digest


def test_a_release_is_what_its_events_say_in_turn():
    events = [
        Event(1, "t", "begun", "p", BEGUN),
        Event(
            2,
            "t",
            "counted",
            "p",
            {
                "release": 1,
                "spending": Spending(0.5).to_plain(),
                "rows_of_person": 2,
                "people": None,
            },
        ),
        Event(3, "t", "published", "p", {"release": 1, "sha256": "cd"}),
    ]
    (begun,) = stored_releases(events[:1])
    (released,) = stored_releases(events)
    assert (begun.counted, begun.spending.epsilon) == (False, 1.0)
    assert (released.counted, released.of_person.epsilon, released.published) == (True, 1.0, "cd")
    (withdrawn,) = stored_releases([events[0], Event(2, "t", "withdrawn", "p", {"release": 1})])
    assert withdrawn.to_plain()["withdrawn"] is True


@pytest.mark.parametrize(
    "event",
    [
        Event(1, "t", "counted", "p", {"release": 7}),
        Event(1, "t", "begun", "p", {**BEGUN, "spending": None}),
        Event(1, "t", "burnt", "p"),  # type: ignore[arg-type]
        Event(1, "t", "published", "p", {}),
    ],
)
def test_an_event_that_makes_no_sense_is_named(event):
    with pytest.raises(InputError, match="event 1 of the ledger cannot be read"):
        stored_releases([event])
