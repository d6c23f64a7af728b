"""Ways to choose a law: numbers in, numbers out.

Nothing here knows of schemas, mechanisms or tables, so that a law can be designed without data and
every solver can be checked against brute force. `patterns` chooses which attributes change
together; `matrices` chooses the response matrix of one attribute. `problem` and `highs` serve both.
"""
