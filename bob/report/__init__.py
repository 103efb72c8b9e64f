"""Reports of results for terminals, pages and documents. No module here uses guests or knows colours."""
