"""Under what an evaluation is run: all that one needs to run it again."""
