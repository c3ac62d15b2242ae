"""What those read who watch over the service: metrics that are fetched, spans that are sent."""
