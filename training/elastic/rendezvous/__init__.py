"""The rendezvous store and who may use it."""
