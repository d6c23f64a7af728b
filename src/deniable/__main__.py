"""``deniable`` and ``python -m deniable`` are the command line."""

import sys


def main() -> None:
    """Run the command line, whose loading can be interrupted too."""
    try:
        from deniable.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("deniable: interrupted; nothing was left half-written\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
