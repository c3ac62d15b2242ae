"""Records of runs that no test waits for."""
