"""The data sets, one module each, with `load(config, seed)`."""
