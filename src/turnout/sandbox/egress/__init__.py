"""What a sandbox may reach: an allow-list of host names, through a proxy on the host."""
