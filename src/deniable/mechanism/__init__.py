"""Mechanisms: their description, privacy account, sampling and channel.

`mechanism` is the description, `privacy` computes its levels in nats and `strength` its entropy in
bits, `best_guess` its guarantees where ε is unbounded; `randomizer` draws; `channel` maps tables of
some attributes, and `prediction` returns the errors to expect before there are data.
"""
