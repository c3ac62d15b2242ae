"""What decisions rest on: measured, applied, and taken back."""
