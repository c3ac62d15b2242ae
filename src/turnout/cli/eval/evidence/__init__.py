"""What evaluations show of models: applied to routing, and tried out beforehand."""
