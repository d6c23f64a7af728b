"""Black-box audit of a mechanism, from input and output rows only.

It can refute a claim, with a stated probability of error, and never proves one.
"""

from deniable.audit.audit import Audit, audit
from deniable.audit.boxes import Box, command_box, rows_box
from deniable.audit.plan import Plan, Power

__all__ = ["Audit", "Box", "Plan", "Power", "audit", "command_box", "rows_box"]
