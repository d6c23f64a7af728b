"""Designs: from a request to levels, law, mechanism and account.

`design` is the one call. `methods` turn levels into a law, `budget` divides a total into levels,
`level_designs` puts the law into a mechanism.
"""
