"""Where the workspaces of runs are kept between segments."""
