"""The stages of a request's one way through the gateway, each value in, value out."""
