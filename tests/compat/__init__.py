"""What `make compat` makes of other people's suites: its reading of them, and that its records agree."""
