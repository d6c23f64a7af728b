"""``python -m deniable`` is the command line."""

from deniable.cli import main

if __name__ == "__main__":
    main()
