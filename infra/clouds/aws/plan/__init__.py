"""A cluster on AWS: what was decided (`AwsPlan` and its parts) and the decision itself (`decide`)."""
