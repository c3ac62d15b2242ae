"""The web console: see, approve and govern runs in a browser."""
