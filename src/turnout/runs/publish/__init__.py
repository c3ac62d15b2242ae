"""What becomes of a finished run outside of the service: a branch, a draft, a word to a forge."""
