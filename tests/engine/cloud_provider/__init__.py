"""What the stand-ins for clouds share: a provider's protocol, its memory, and what the SDK says of its arguments.

A stand-in adds its kinds of resources, what its cloud refuses, and a `bin/pulumi-resource-<package>` for the engine.
"""
