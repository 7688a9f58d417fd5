"""The stacks that the service is measured beside, each written as its own documentation says."""
