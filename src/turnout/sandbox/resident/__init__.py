"""The host's end of a resident agent."""
