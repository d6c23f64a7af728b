"""Tables that look like the truth and know that they are not: fitted, drawn, written, combined."""
