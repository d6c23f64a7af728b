"""Workers of a release in parts: processes on this machine, and external engines.

An engine's plan never contains draws, which it could run again: an adapter runs one action of its
own and returns a finished release (docs/decisions/0019-parts-without-a-key.md).
"""
