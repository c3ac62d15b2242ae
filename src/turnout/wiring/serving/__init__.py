"""What is served to others: the gateway, and the service that holds one."""
