"""A cluster on Alibaba Cloud: what was decided (`AlicloudPlan` and its parts) and the decision itself (`decide`)."""
