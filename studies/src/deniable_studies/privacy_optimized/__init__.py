"""Yamamoto and Shibuya: laws for whole records, their heuristic, and their applications."""
