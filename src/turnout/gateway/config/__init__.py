"""The tables of `turnout.toml` that the gateway reads."""
