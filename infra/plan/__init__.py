"""The types of finished plans, as frozen data, and the functions that lay them out."""
