"""Programs that run in containers of an image, before any sandbox does."""
