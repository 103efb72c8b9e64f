"""Reports of results for terminals, pages and documents. Nothing here uses guests or colours."""
