"""Optimizers, the moving average of weights, the loss."""
