"""Files and dataframes to batches of codes, and released codes back to tables.

The only place that knows file formats and dataframe libraries. Data flows one way:
:func:`open_table` yields batches of codes, something randomizes them, and a :class:`TableWriter`
or :func:`~deniable.tables.frames.randomize_frame` makes the table that is released.
"""

from deniable.tables.columns import Column, Forms, released_columns
from deniable.tables.plink import FilesetWriter, is_fileset
from deniable.tables.reading import Batch, TableReader, open_table
from deniable.tables.writing import FORMATS, TableWriter, table_format

__all__ = [
    "FORMATS",
    "Batch",
    "Column",
    "FilesetWriter",
    "Forms",
    "TableReader",
    "TableWriter",
    "is_fileset",
    "open_table",
    "released_columns",
    "table_format",
]
