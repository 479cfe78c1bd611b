"""torch's and torchvision's API."""
