"""The published folder: randomized rows, their record, codebook and report.

`release` shares row by row; `curator` reads a whole table first (PRAM).
"""
