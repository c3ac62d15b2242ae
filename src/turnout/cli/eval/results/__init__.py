"""What results show, in every form: reported, compared, exported and published."""
