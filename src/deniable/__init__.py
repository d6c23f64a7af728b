"""Plausible deniability for multi-attribute records, with numbers that hold.

    import deniable

    schema = deniable.Schema.from_toml("insurance.toml")
    plan = deniable.design(schema, epsilon=4)
    released = deniable.randomize(frame, plan)
    deniable.open(released, plan).shares(["race", "hhi"])[0].table()

The names of :mod:`deniable.api` are loaded when they are first used, so that importing the package
costs nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.api import *


class _Package(ModuleType):
    """Keeps `deniable.design` the function.

    Python makes an imported package an attribute of its parent, and this one has the name of the
    package ``deniable.design``, which is still found by import.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "design" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # What engines send to their workers may speak of the package: by its name, as of others.
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if not name.startswith("_") or name == "__all__":
        api = import_module("deniable.api")
        if name in (*api.__all__, "__all__"):
            return getattr(api, name)
    raise AttributeError(f"module 'deniable' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
