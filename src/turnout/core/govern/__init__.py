"""What a team governs the gateway by: keys, policy revisions, evidence, and what was noticed."""
