"""The privacy–accuracy frontier of one attribute: priors, methods, rows, folders, and a choice."""
