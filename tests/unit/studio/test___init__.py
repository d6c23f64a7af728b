"""What the studio needs, and what is said where it is not there."""

import pytest

from deniable import studio
from deniable.errors import InputError


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    studio.check_installed()
    monkeypatch.setattr(studio, "find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"tomli_w.*pip install 'deniable\[web\]'"):
        studio.check_installed()
