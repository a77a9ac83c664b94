"""A cluster on AWS, declared from its finished plan."""
