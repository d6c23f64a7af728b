"""Problems and certificates: all that checking a stored proof needs, and no search."""
