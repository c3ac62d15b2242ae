"""The `turnout` command: parse, call, print."""
