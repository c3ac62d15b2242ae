"""The routes by which people and programs govern the gateway."""
