"""Problems and certificates, for checking stored proofs; no search."""
