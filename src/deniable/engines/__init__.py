"""What works on a release in parts: processes on this machine, and engines that a user has.

No engine is handed anything that is drawn when somebody asks for it: an adapter runs one action of
its own, and what it returns is a finished release (docs/decisions/0019-parts-without-a-key.md).
"""
