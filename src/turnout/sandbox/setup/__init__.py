"""What `/venv` and the workspace hold beside the commit: packages, the project, node modules."""
