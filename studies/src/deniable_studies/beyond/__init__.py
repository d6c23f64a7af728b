"""Studies that go beyond the papers: this project's own statements, checked."""
