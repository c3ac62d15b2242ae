"""Which hosts of files a sandbox may reach, once it was seen what the indexes name."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from turnout.sandbox.base import CommandResult, Connection, Egress, Exit, HostRule
from turnout.sandbox.mirrors.pip_settings import PackagePlace, PipSettings
from turnout.sandbox.mirrors.reach import discovered, find_reach, rules_for_files

SETTINGS = PipSettings((PackagePlace("https://index.test/simple"),))
INNER = HostRule("index.test", (443,), private=True)


@dataclass
class Rooms:
    """Starts sandboxes that reach an index, which names the file host of its page."""

    state_dir: Path
    index_is_public: bool
    status: int = 200
    python: str = "python3"
    asked: list[Egress] = field(default_factory=list)

    async def start_bare(self, run_id, mounts, limits, *, workspace="empty", egress) -> "Rooms":
        """Note what the sandbox may reach."""
        self.asked.append(egress)
        return self

    def connections(self) -> tuple[Connection, ...]:
        """Say what the gate would."""
        allowed = self.index_is_public or self.asked[-1].rules[0].private
        return (Connection("index.test", 443, allowed, "" if allowed else "not public"),)

    async def run(self, command: object) -> CommandResult:
        """Answer as the program that looks at pages."""
        status = self.status if self.connections()[0].allowed else 0
        told = [{"status": status, "places": [["files.test", 8080]]}]
        ended = Exit("exited", 0, None, 0.1, 0, 0, 0, 0)
        return CommandResult(ended, json.dumps(told).encode(), b"")

    async def close(self) -> None:
        """Do nothing."""


async def test_a_public_index_that_names_an_inner_host_does_not_open_it(tmp_path: Path) -> None:
    """Neither to the sandbox that makes an environment, nor to runs later."""
    rooms = Rooms(tmp_path, index_is_public=True)
    reach = await discovered(rooms, find_reach(SETTINGS), SETTINGS)
    assert reach.egress.rules == (INNER, HostRule("files.test", (8080,)))
    assert await rules_for_files(tmp_path, SETTINGS) == (HostRule("files.test", (8080,)),)


async def test_an_index_inside_the_company_may_name_hosts_there(tmp_path: Path) -> None:
    """It is asked again, once it was refused for not being public."""
    rooms = Rooms(tmp_path, index_is_public=False)
    reach = await discovered(rooms, find_reach(SETTINGS), SETTINGS)
    assert reach.egress.rules == (INNER, HostRule("files.test", (8080,), private=True))
    assert [egress.rules[0].private for egress in rooms.asked] == [False, True]


async def test_a_public_index_cannot_pretend_to_be_refused(tmp_path: Path) -> None:
    """What counts is what the gate has done, not what a server says."""
    rooms = Rooms(tmp_path, index_is_public=True, status=403)
    reach = await discovered(rooms, find_reach(SETTINGS), SETTINGS)
    assert "no index answers" in reach.obstacle
    assert len(rooms.asked) == 1
