"""Commands that run a module of this folder, whatever the current directory is."""

from pathlib import Path

from headrace.bench import processes

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
import runpy, sys
sys.path.insert(0, {root!r})
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs `module` with Python, as `python -m` would from the project folder."""
    return processes.python_command("-c", _PROGRAM.format(root=str(ROOT), module=module), *arguments)
