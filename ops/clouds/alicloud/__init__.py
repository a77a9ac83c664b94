"""What is Alibaba Cloud's own in the day-by-day commands: discovery by tags, recovery, the sweep."""
