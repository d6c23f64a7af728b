"""Response matrices of one attribute: what they give away, how well they estimate, and the bound.

The bound is checked by `frontier_certificate`, which imports no solver.
"""
