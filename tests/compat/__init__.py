"""The tools of `make compat` for other projects' suites: how they read them, and that their records agree."""
