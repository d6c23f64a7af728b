"""Where a server may listen, and how it ends."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.collect.serving import bound_socket, check_listening, is_loopback
from deniable.errors import InputError
from unit.collect.studies import body_of, example_folder, post


def test_answers_are_never_open_on_the_way() -> None:
    check_listening("127.0.0.1", None, None, 0)
    check_listening("::1", None, None, 0)
    check_listening("0.0.0.0", None, None, 1)
    check_listening("0.0.0.0", Path("c"), Path("k"), 0)
    for host in ("0.0.0.0", "192.0.2.1", "::", "study.example"):
        with pytest.raises(InputError, match="would be open on the way"):
            check_listening(host, None, None, 0)
    with pytest.raises(InputError, match="go together"):
        check_listening("127.0.0.1", Path("c"), None, 0)
    assert is_loopback("127.9.9.9")
    assert not is_loopback("0.0.0.0")


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be used"):
            bound_socket("127.0.0.1", port)
    with pytest.raises(InputError, match="cannot be used"):
        bound_socket("192.0.2.1", 0)


@pytest.mark.slow
def test_sigterm_ends_it_with_nothing_lost_and_nothing_logged(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "deniable", "collect", "serve", str(folder.path), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        url = running.stdout.readline().split()[-1]
        assert post(url, body_of(folder.study))[0] == 201
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 0
    assert out.count("\n") <= 1  # the study's code, if there was time for it
    assert err == ""
    store = folder.open_store()
    assert store.totals().records == 1
    store.dispose()


@pytest.mark.slow
def test_killed_at_any_moment_it_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    folder = example_folder(tmp_path)
    acknowledged, seed = set(), 0
    for kill_after in range(1, 13):
        with subprocess.Popen(
            [sys.executable, "-m", "deniable", "collect", "serve", str(folder.path), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            url = running.stdout.readline().split()[-1]
            for _ in range(kill_after):
                seed += 1
                if post(url, body_of(folder.study, seed=seed))[0] == 201:
                    acknowledged.add(seed)
            running.kill()
    store = folder.open_store()
    assert store.totals().records == len(acknowledged) == seed
    store.dispose()
