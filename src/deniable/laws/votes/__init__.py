"""Laws of patterns that depend on one integer-weighted sum, or on several: pure numerics.

A *vote* compares the sum of the weights of the unchanged attributes with a threshold. `gated` is
the law of one dithered sum under a vote or a clipped ramp, `blend` that of several; both have keep
probabilities, eigenvalues and error bounds. `sums`, `frequencies` and `backward` evaluate them,
`choices` and `sampling` draw from them exactly, and `vote_law` computes their levels as
drawn.

No search here: `deniable.solvers` chooses the weights, `deniable.laws` wraps the laws.
"""
