"""Entry point of ``deniable reproduce``: the names it uses."""

from deniable_studies import catalogue, folder
from deniable_studies.study import Setting

__all__ = ["Setting", "catalogue", "folder"]
