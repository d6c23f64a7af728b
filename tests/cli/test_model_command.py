"""model, and what estimate does with known shares and small groups, as a user types them."""



from cli.test_commands import run  # noqa: F401
