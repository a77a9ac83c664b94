"""Why a rendezvous store cannot be used; each message is one line for people."""


class StoreKeyError(Exception):
    """There is no key of the store that can be used."""


class StoreAddressError(Exception):
    """The store cannot listen on its address."""


class StoreUnreachableError(Exception):
    """The store does not answer, or has another key."""
