"""Reports of results for terminals, pages and documents. The modules here start no guests, and do not decide on
colours: they only name styles."""
