"""From released rows to answers: counts, tables, means, quantiles and tests, each with its error.

`counting` and `tabulate` count, `inference` inverts and says how wrong that can be, and a module
for each kind of answer stands on these; `question` is where a question is asked.
"""
