"""What nobody may read: kept out of records, prompts and logs."""
