"""What requests show beside their answers: tools that were seen, and what somebody is told of."""
