"""What reports have of a campaign: conditions, results, why, commands."""
