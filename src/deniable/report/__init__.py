"""Report page and codebook of a release.

Both are pure functions of the release's record (``record.json`` as plain values), which does not
depend on the true values.
"""
