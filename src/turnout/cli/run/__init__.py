"""`turnout run`: a task and a repository in, a tested diff out."""
