"""The channel on some of a mechanism's attributes, and its inverse, as maps of tables.

A channel M takes the table of the true values (shape: categories of every attribute) to the table
of what is expected to be released (shape: outputs of every attribute). It is a product over axes of
three kinds, and none needs a matrix over the joint table:

* axes whose laws are pattern laws: together one pattern kernel, applied by its eigenvalues;
* axes with a response matrix: that small matrix;
* axes released as they are: nothing is done.

Inverses, squares and entrywise products of such maps are of the same form, so every variance in
:mod:`deniable.inference` costs a few passes over the table.

An axis may also be one part of an attribute merged from several columns. Under a pattern law the
parts are axes like any others: 1 − J/a, which is multiplied by φ, is the sum of the components of
all nonempty sets of parts, so that every set of parts has the eigenvalue of the attribute they
belong to. Under a response matrix the parts asked for share the matrix: L is followed by the sum S
over the parts that were not. SL is unbiased for their table, and the formulas of
:mod:`deniable.inference` hold with SL in place of L. The released values of such an attribute are
one variable; it stands on the axis of the part named first, and the others have one value.
"""

from deniable.channel.channel import Channel
from deniable.channel.table_map import TableMap

__all__ = ["Channel", "TableMap"]
