"""Plausible deniability for multi-attribute records, with numbers that hold.

    import deniable

    schema = deniable.Schema.from_toml("insurance.toml")
    plan = deniable.design(schema, epsilon=4)
    released = deniable.randomize(frame, plan)
    deniable.open(released, plan).shares(["race", "hhi"])[0].table()

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.api import *

__all__ = [
    "Agreement",
    "Attribute",
    "Classifier",
    "Comparison",
    "Covariance",
    "Design",
    "DesignRequest",
    "Estimate",
    "Honesty",
    "Independence",
    "InputError",
    "Leverage",
    "Mean",
    "Mechanism",
    "Model",
    "ModelQuery",
    "OpenedRelease",
    "Publication",
    "Quantile",
    "Regressor",
    "Schema",
    "Shares",
    "Smooth",
    "StrengthRequest",
    "Trend",
    "birkhoff",
    "combine",
    "design",
    "expected_tables",
    "open",
    "plan",
    "plan_trend",
    "pram",
    "randomize",
    "read_design",
    "share",
    "smallest_epsilon",
    "synthesize",
]


class _Package(ModuleType):
    """Keeps `deniable.design` the function.

    Python makes an imported package an attribute of its parent, and this one has the name of the
    package ``deniable.design``, which is still found by import.
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
