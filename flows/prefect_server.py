"""Prefect's environment, and a Prefect server kept for the night.

Prefect reads its settings when it is imported, so they are put into the environment before that. What the user
has set stands.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from flows.home import home
from flows.keys import without_keys
from rectom.errors import SettingsError

_HOST = "127.0.0.1"
_START_S = 120.0

#: The server writes task runs in batches, so that an ephemeral one has recorded them all when it is killed.
_BATCHES = {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
}


def environment() -> dict[str, str]:
    """Prefect's settings for RecToM: data under our home, quiet, no analytics, time to start."""
    data = home() / "prefect"
    return {
        "PREFECT_HOME": str(data),
        "PREFECT_LOCAL_STORAGE_PATH": str(data / "storage"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_LOGGING_SETTINGS_PATH": str(_logging()),
        "PREFECT_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_CLI_COLORS": "false",
        **_BATCHES,
    }


def _logging() -> Path:
    """Prefect's own file of how to log. By such a file code is run, and somebody else's may lie in the home."""
    found = find_spec("prefect")
    assert found
    assert found.origin
    return Path(found.origin).parent / "logging" / "logging.yml"


def prepare() -> None:
    """Put the settings into this process's environment, and a server of ours that answers, if there is one."""
    for name, value in environment().items():
        os.environ.setdefault(name, value)
    Path(os.environ["PREFECT_HOME"]).expanduser().mkdir(parents=True, exist_ok=True)
    if "PREFECT_API_URL" not in os.environ and (url := status()):
        os.environ["PREFECT_API_URL"] = f"{url}/api"


def status() -> str | None:
    """The address of the server that `start` started, if it answers."""
    try:
        note = json.loads(_note().read_text())
        url = f"http://{_HOST}:{int(note['port'])}"
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if _answers(url) else None


def start(port: int | None = None) -> str:
    """Start a server that outlives this process, and wait until it answers. Returns its address.

    Raises SettingsError if one runs already or the server does not come up.
    """
    if running := status():
        raise SettingsError(f"a server runs already at {running}; stop it with: rectom server stop")
    if port and _taken(port):
        raise SettingsError(f"something listens at port {port} already; choose another --port, or none")
    port = port or free_port()
    _note().parent.mkdir(parents=True, exist_ok=True)
    log = home() / "prefect" / "server.log"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", _HOST, "--port", str(port)]
    with log.open("ab") as sink:
        process = subprocess.Popen(  # noqa: S603
            command,
            stdout=sink,
            stderr=sink,
            stdin=subprocess.DEVNULL,
            env=_child_environment(f"http://{_HOST}:{port}/api"),
            start_new_session=True,
        )
    _note().write_text(json.dumps({"pid": process.pid, "port": port}))
    url = f"http://{_HOST}:{port}"
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(url):
            return url
        time.sleep(0.5)
    process.terminate()
    _note().unlink(missing_ok=True)
    raise SettingsError(f"the Prefect server did not come up; see {log}")


def stop() -> bool:
    """Stop the server that `start` started; False if there is none."""
    try:
        note = json.loads(_note().read_text())
        pid, port = int(note["pid"]), int(note["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    found = _is_server(pid, port)
    if found:
        os.kill(pid, 15)
        deadline = time.monotonic() + 20
        while _is_server(pid, port) and time.monotonic() < deadline:
            time.sleep(0.2)
    _note().unlink(missing_ok=True)
    return found


def _note() -> Path:
    return home() / "prefect" / "server.json"


def _is_server(pid: int, port: int) -> bool:
    """Whether a process is the server at a port still: a pid may have been given to somebody else since."""
    listing = subprocess.run(  # noqa: S603
        ["ps", "-p", str(pid), "-o", "stat=,command="],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return f"prefect server start --host {_HOST} --port {port}" in listing and not listing.lstrip().startswith("Z")


def _child_environment(api: str) -> dict[str, str]:
    kept = without_keys(os.environ)
    kept.pop("PREFECT_API_URL", None)
    # Its pages ask the default port otherwise.
    pages = {"PREFECT_SERVER_UI_API_URL": api, "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false"}
    return {**environment(), **kept, **pages}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/health", timeout=2) as reply:  # noqa: S310
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0


def free_port() -> int:
    """A port that nobody listens at just now."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
