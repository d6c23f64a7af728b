"""Choice of laws: numbers in, numbers out.

Solvers do not depend on schemas, mechanisms or tables, so that a law can be designed without data
and every solver checked against brute force. `patterns` chooses pattern laws, `matrices` the
response matrix of one attribute; `highs` serves both.
"""
