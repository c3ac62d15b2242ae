"""What the pages show, worked out from what the gateway knows; nothing here asks anybody."""
