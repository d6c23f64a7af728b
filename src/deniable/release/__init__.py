"""A folder to publish: randomized rows, the record that states what is promised, codebook, report.

`release` shares row by row; `curator` reads a whole table first (PRAM).
"""
