"""The agent: strategies that turn a brief into changes of a workspace, event by event."""
