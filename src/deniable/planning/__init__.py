"""Numbers of rows and levels that a wanted accuracy needs."""
