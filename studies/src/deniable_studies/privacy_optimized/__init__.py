"""Yamamoto and Shibuya: laws for whole records, their heuristic, and what they are good for."""
