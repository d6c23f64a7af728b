"""What a release says about itself to people: a page to read and a codebook to work with.

Both are pure functions of the release's record (``record.json`` as plain values), which holds
nothing that depends on the true values; so nothing here can reveal any of them.
"""
