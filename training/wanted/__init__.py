"""What a job may ask for, as frozen dataclasses by kind; loads without torch."""
