"""Policy rules on rendered AWS resources."""
