"""Properties: rules about crashes, such as "an append is atomic". The module ``rules`` decides whether an observation
(the files that bob sees after a crash) breaks a property. The module ``presence`` has the oracle, which decides which
operations survived."""
