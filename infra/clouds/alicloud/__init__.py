"""A cluster on Alibaba Cloud, declared with pulumi-alicloud 4."""
