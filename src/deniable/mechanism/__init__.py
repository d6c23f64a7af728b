"""A mechanism: the frozen description that sampler, accountant and estimator read, and its numbers.

`mechanism` is the description, `privacy` turns its promises into nats, `strength` into bits,
`best_guess` says what holds where there is no ε; `randomizer` draws; `channel` is what happens to a
table of some of the attributes, and `prediction` what can be said of estimates before there are
data.
"""
