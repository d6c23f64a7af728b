"""Pattern laws for category counts and levels: the smallest ε, with caps, floors and proofs.

Certificates of optimality live in `certificate`, which imports no solver.
"""
