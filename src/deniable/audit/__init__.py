"""An audit from outside: rows in, rows out, and nothing else is looked at.

It can refute a claim, with a probability of error that is stated; it never proves one.
"""

from deniable.audit.audit import Audit, audit
from deniable.audit.boxes import Box, command_box, rows_box
from deniable.audit.plan import Plan, Power

__all__ = ["Audit", "Box", "Plan", "Power", "audit", "command_box", "rows_box"]
