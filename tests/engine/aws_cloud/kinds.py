"""The account of this AWS. What stands of resource types in `kinds_*.py` is from the provider's page of each resource
(registry.terraform.io, hashicorp/aws: ids, import ids, computed attributes, what forces a replacement) and, of ARNs,
from the Service Authorization Reference.
"""

ACCOUNT = "123456789012"
