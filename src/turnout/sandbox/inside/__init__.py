"""What runs inside a sandbox: standard library only, Python 3.8 or newer."""
