"""Where forges deliver their webhooks."""
