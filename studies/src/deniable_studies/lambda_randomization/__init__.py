"""Ruiz: λ-randomization."""
