"""Tables and figures of the papers, recomputed: one module each."""
