"""What the gateway's receipts tell those who watch over it."""
