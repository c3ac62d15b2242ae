"""The Python inside, as packages see it."""

import json

from pydantic import BaseModel, ValidationError

from turnout.errors import UnfitError
from turnout.sandbox.bare import BareStarter
from turnout.sandbox.base import Command
from turnout.sandbox.rooms.room import opened_room

__all__ = ["Interpreter", "ask_interpreter"]

_ASK = """
import json, os, platform, sys
print(json.dumps({
    "libc": list(platform.libc_ver()),
    "environment": {
        "implementation_name": sys.implementation.name,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_system": platform.system(),
        "python_full_version": platform.python_version(),
        "python_version": "%d.%d" % sys.version_info[:2],
        "sys_platform": sys.platform,
    },
}))
"""


class Interpreter(BaseModel):
    """What decides which packages fit."""

    libc: tuple[str, str]
    environment: dict[str, str]
    """Variables of markers and their values."""

    @property
    def key(self) -> str:
        """Text that is another one where other packages fit."""
        return json.dumps(self.model_dump(), sort_keys=True)

    @property
    def pip_options(self) -> list[str]:
        """How the host's pip is told which wheels it takes."""
        version = self.environment["python_version"]
        machine = self.environment["platform_machine"]
        tag = f"cp{version.replace('.', '')}"
        platforms = [f"linux_{machine}"]
        name, _, number = self.libc[1].partition(".")
        if self.libc[0] == "glibc" and name == "2" and number.isdigit():
            platforms += [f"manylinux_2_{minor}_{machine}" for minor in range(int(number), 4, -1)]
            platforms += [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")]
        options = ["--python-version", version, "--implementation", "cp"]
        for abi in (tag, "abi3", "none"):
            options += ["--abi", abi]
        for platform in platforms:
            options += ["--platform", platform]
        return options


async def ask_interpreter(starter: BareStarter) -> Interpreter:
    """Ask a sandbox for its interpreter."""
    async with opened_room(starter, []) as room:
        argv = (starter.python, "-ISE", "-c", _ASK)
        result = await room.sandbox.run(Command(argv=argv, cwd="/", timeout=30))
    try:
        return Interpreter.model_validate_json(result.stdout)
    except ValidationError:
        raise UnfitError(
            f"The sandbox's interpreter {starter.python} does not answer.",
            mend="Install Python 3.8 or newer with its venv module: apt install python3-venv.",
        ) from None
