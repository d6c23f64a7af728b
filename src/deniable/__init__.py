"""Plausible deniability for multi-attribute records, with numbers that hold.

    import deniable

    schema = deniable.Schema.from_toml("insurance.toml")
    plan = deniable.design(schema, epsilon=4)
    released = deniable.randomize(frame, plan)
    deniable.estimate(released, plan, of=["race", "hhi"]).table()

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.api import *

__all__ = [
    "Attribute",
    "Design",
    "Estimate",
    "InputError",
    "Mechanism",
    "Model",
    "OpenedRelease",
    "Schema",
    "StrengthRequest",
    "birkhoff",
    "combine",
    "design",
    "estimate",
    "estimate_covariance",
    "estimate_groups",
    "estimate_mean",
    "estimate_quantile",
    "expected_tables",
    "form_agreement",
    "independence_test",
    "leverage",
    "model",
    "open_release",
    "plan",
    "plan_trend",
    "pram",
    "randomize",
    "read_design",
    "share",
    "smallest_epsilon",
    "synthesize",
    "trend_test",
]


class _Package(ModuleType):
    """Keeps `deniable.design` and `deniable.estimate` the functions that a user calls.

    They share their names with the packages they come from, and Python makes an imported package
    an attribute of the one it lies in. Packages are found by import all the same.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # What engines send to their workers may speak of the package: by its name, as of others.
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    from deniable import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
