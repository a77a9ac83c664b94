"""One folder a cloud; infra/registry.py lists them."""
