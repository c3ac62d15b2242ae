"""What deployments show when they are asked: probes and live figures."""
