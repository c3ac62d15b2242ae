"""What workers on other machines ask the gateway beside model calls."""
