"""What a run reports: events, files and figures."""
