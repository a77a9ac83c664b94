"""Policy rules on rendered Alibaba Cloud resources."""
