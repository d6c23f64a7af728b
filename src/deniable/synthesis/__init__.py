"""Synthetic tables: fitted, drawn, written and combined."""
