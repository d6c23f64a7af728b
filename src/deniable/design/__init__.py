"""From a request to a mechanism: levels, law, mechanism, its account and its record.

`design` is the one call. `methods` turn levels into a law, `budget` divides a total into levels,
`level_designs` puts the law into a mechanism; `record` writes one down and refuses what does not
hold.
"""
