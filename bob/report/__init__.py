"""Reports of results for terminals, pages and documents. Nothing here knows a guest or a colour."""
