"""What runs cost, by their record and by the gateway's receipts."""
