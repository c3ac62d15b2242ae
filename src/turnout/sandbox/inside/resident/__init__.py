"""The resident agent: the process inside each sandbox that does what the host asks for."""
