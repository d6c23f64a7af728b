"""Clipped ramps and their mixtures: the laws of a design with caps and a floor on pairs.

`evaluate` says what a ramp delivers, `newton` finds the ramp that delivers given levels, `search`
the best of these, `mixture` mixes ramps by one linear program, and `quantize` turns both into laws
that are drawn from. Proofs: docs/proofs/clipped.md.
"""
