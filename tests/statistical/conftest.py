"""What thousands of releases share."""

import pytest

from deniable.estimate import inference, intervals
from deniable.mechanism import prediction
from deniable.mechanism.channel import Channel
from deniable.mechanism.mechanism import Mechanism


@pytest.fixture(autouse=True)
def channels_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What estimates need to know of a mechanism: computed once, not again for every release."""
    made: dict[tuple[int, tuple[str, ...]], Channel] = {}

    def channel(mechanism: Mechanism, attributes: tuple[str, ...]) -> Channel:
        key = (id(mechanism), tuple(attributes))
        if key not in made:
            made[key] = Channel(mechanism, attributes)
        return made[key]

    for module in (inference, prediction):
        monkeypatch.setattr(module, "Channel", channel)
    ranges: dict[int, tuple[Channel, object]] = {}  # with its channel, so that no id comes back

    def variance_range(channel: Channel) -> object:
        if id(channel) not in ranges:
            ranges[id(channel)] = channel, prediction.cell_variance_range(channel)
        return ranges[id(channel)][1]

    for module in (inference, intervals):
        monkeypatch.setattr(module, "cell_variance_range", variance_range)
