"""Response matrices of one attribute: disclosure, accuracy, and the bound.

The bound is proved by `certificate`, which imports no solver.
"""
