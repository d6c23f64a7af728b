"""Files and dataframes to batches of codes, and released codes to tables.

The only room with file formats and dataframe libraries. :func:`open_table` yields batches of codes;
after randomization a :class:`TableWriter` or :func:`~deniable.tables.frames.randomize_frame` makes
the released table.
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
