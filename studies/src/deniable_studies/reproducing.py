"""What ``deniable reproduce`` needs of the studies, under one name for its entry point."""

from deniable_studies import catalogue, folder
from deniable_studies.study import Setting

__all__ = ["Setting", "catalogue", "folder"]
