"""The rendezvous store of a job, its key and its access control."""
