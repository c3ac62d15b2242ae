"""How a commit becomes a tree inside the walls, and how what changed comes out again."""
