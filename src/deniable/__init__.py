"""Plausible deniability for multi-attribute records."""
