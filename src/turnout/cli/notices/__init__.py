"""What requests at the gateway showed: tools, events, and who is told of them."""
