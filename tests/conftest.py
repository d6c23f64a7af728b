"""Shared settings."""

from hypothesis import HealthCheck, settings

# No deadline: a slow machine is not a defect.
settings.register_profile(
    "deniable",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("deniable")
