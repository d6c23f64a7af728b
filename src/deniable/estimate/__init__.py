"""From released rows to answers: counts, tables, means, quantiles and tests, each with its error.

`source` finds the rows of a release, `counting` and `tabulate` count them, `inference` inverts and
says how wrong that can be. `question` holds what all questions have in common; each kind stands in
the module of its answer: `shares`, `ordered`, `covariance`, `independence`.
"""
