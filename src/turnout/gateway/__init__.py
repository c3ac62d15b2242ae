"""The policy gateway: each model call is judged, routed, served and put on a receipt."""
