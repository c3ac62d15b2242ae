"""What runs in the pod of a sandbox: standard library only, Python 3.8 or newer."""
