"""Statements of a stored mechanism: account, record, strata, caps, bound, expected accuracy.

No module here loads a search or a solver.
"""
