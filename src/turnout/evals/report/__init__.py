"""What an evaluation shows: figures, paired comparisons, and the forms they are told in."""
