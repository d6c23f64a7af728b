"""What collecting needs is an extra, and its absence is said."""

import pytest

from deniable import collect
from deniable.errors import InputError


def test_a_missing_extra_is_said_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    collect.check_installed()
    monkeypatch.setattr(collect, "NEEDED", ("no_such_package",))
    with pytest.raises(InputError, match=r"no_such_package, which is not installed: pip install"):
        collect.check_installed()
