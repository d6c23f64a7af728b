"""Schema drafts from a dataframe (`Schema.from_frame`)."""

from typing import Any

from deniable.errors import InputError
from deniable.tables.drafting import WARNING, draft_with_reasons
from deniable.tables.frames import frame_can_be_read_again


def draft_frame(frame: Any) -> tuple[str, list[str]]:
    """Return a dataframe's schema draft in TOML, and its warnings."""
    if not frame_can_be_read_again(frame):
        raise InputError(
            "a schema is drafted from a dataframe (pandas, Polars, pyarrow); for a file: "
            "`deniable schema init FILE --output draft.toml`, then Schema.from_toml"
        )
    text, reasons = draft_with_reasons(frame)
    left_out = "; ".join(f"'{name}' {reason}" for name, reason in reasons.items() if reason)
    if all(reasons.values()):
        raise InputError(f"the draft would declare no column of the table: {left_out}")
    read_off = "drafted = true" in text.splitlines()
    missing = [f"the draft leaves out columns: {left_out}"] if left_out else []
    return text, [*([WARNING] if read_off else []), *missing]
