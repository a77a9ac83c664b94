"""Policy rules on rendered Kubernetes objects."""
