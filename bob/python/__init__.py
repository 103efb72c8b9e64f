"""The interface of bob for Python programs. The module ``functions`` has its functions. The module ``calls`` makes
their arguments from the options that bob declares for its command line."""
