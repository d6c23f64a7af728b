"""Response matrices of one attribute: what they give away, how well they estimate, and the bound.

The bound is proved by `certificate`, which imports no solver.
"""
