"""What a run reports: events, files, figures."""
