"""A page on this machine: see what a mechanism promises and what it costs, and make the release.

A *draft* is all that somebody has in mind: a schema, wishes, and what they compare; the page is a
function of it. Numbers come from the library, in a process of their own that is ended when the
wish changes (`working`); what is made is made by the command line (`making`).
docs/studio.md is for who uses it.
"""
