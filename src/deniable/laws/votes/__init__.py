"""Laws of patterns that depend on one integer-weighted sum, or on several: pure numerics.

A *vote* says whether the weights of the kept attributes add up to a threshold. `gated` is the law
of one dithered sum under a vote or a clipped ramp, `blend` that of several; both know their keep
probabilities, eigenvalues and error bounds. `sums`, `frequencies` and `backward` evaluate
them, `choices` and `sampling` draw from them exactly, and `vote_law` says what they promise as they
are drawn.

Nothing here searches: `deniable.solvers` chooses the weights, `deniable.laws` wraps the laws.
"""
