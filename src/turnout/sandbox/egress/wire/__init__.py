"""Bytes of the proxy: streams, TLS, the first message of TLS, HTTP."""
