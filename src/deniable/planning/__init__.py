"""Numbers of rows and levels for a given accuracy."""
