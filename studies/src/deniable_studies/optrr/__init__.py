"""Huang and Du: OptRR, response matrices of one attribute found by an evolutionary search."""
