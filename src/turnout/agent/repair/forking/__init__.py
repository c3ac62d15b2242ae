"""Other ways to go on with a reply: where the model was in doubt, and how the reply then ends."""
