# Every target is a chore of tools/dev.py, which sets up .venv by itself. Pass more with ARGS="...".
PYTHON ?= python3
ARGS ?=

CHORES := demo test quick check format docs site compat lock bench chaos clean

.PHONY: help $(CHORES)

help:
	@$(PYTHON) tools/dev.py --help

$(CHORES):
	@$(PYTHON) tools/dev.py $@ $(ARGS)
