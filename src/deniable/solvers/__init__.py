"""Ways to choose a pattern law: pure numerics on category counts and privacy levels.

Nothing here knows of schemas, mechanisms or tables, so that a law can be designed without data and
every solver can be checked against brute force. Certificates of optimality live in `certificate`,
which imports no solver.
"""
