"""How a sandbox that shares no folder with us gets files, and gives them back."""
