"""Estimates from released rows: tables, means, quantiles and tests, each with its error.

`source` finds the rows of a release, `counting` and `tabulate` count them, `inference` inverts the
channel and computes standard errors. `query` has the base class of queries; each query is in the
module of its result: `shares`, `ordered`, `covariance`, `independence`.
"""
