#!/usr/bin/env python3
"""Runs in a fresh system that tests/packages/run has booted: installs the packages, does what they say, runs the README's
session, upgrades, removes and purges them.

Folders: /srv/debs (the packages), /srv/documents (README.md), /srv/peers (a Node with MCP servers).
"""

import glob
import json
import os
import pwd
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

MAJOR = os.environ["PG_MAJOR"]
EXTENSION = f"postgresql-{MAJOR}-pml"
CONFIG = Path("/etc/pml/config.json")
HOME = Path("/var/lib/pml-proxy")
URL = "http://127.0.0.1:7410"
PATIENCE = 60


def run(*command, check=True, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def step(text):
    print(f"- {text}", flush=True)


def eventually(what, condition):
    last = None
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if (last := condition()):
                return last
        except (OSError, AssertionError) as error:
            last = error
        time.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE} s: {what} (last: {last})\n{run('journalctl', '-u', 'pml', '--no-pager', check=False)}")


def apt(*arguments):
    return run("apt-get", "-y", "-qq", *arguments, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def sql(text, database="pml"):
    return run("runuser", "-u", "postgres", "--", "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text).strip()


def service(field):
    return run("systemctl", "show", "--value", "--property", field, "pml").strip()


def get(path):
    return urllib.request.urlopen(URL + path, timeout=PATIENCE).read().decode()


# --- What is on the disk ---

# Written by every installation, running system or cluster, not by these packages.
NOT_OURS = re.compile(r"^/(proc|sys|dev|run|tmp|srv|var/(log|tmp|lib/(postgresql|dpkg|apt|systemd)|cache)|etc/\.pwd\.lock)(/|$)")


def files():
    found = set()
    for path, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if not NOT_OURS.match(os.path.join(path, name))]
        found.update(os.path.join(path, name) for name in [*names, *folders])
    return {path for path in found if not NOT_OURS.match(path)}


# --- The README ---

def blocks(title):
    """The blocks under a heading: (language, text)."""
    readme = Path("/srv/documents/README.md").read_text(encoding="utf-8")
    section = readme.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def psql(text):
    """As a document shows it: without row counts, command tags and blank lines."""
    return run("runuser", "-u", "postgres", "--", "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-P", "footer=off", "-d", "pml",
               input=f"SET client_min_messages = error;\n{text}")


def sql_session():
    shown = blocks("A session in SQL")
    compared = 0
    for (language, text), (next_language, output) in zip(shown, [*shown[1:], ("", "")]):
        if language == "sql":
            answer = psql(text)
            if next_language == "text":
                assert lines(answer) == lines(output), f"{text}\ngave\n{answer}"
                compared += 1
    assert compared >= 3, "the README shows a session"


# --- An agent ---

class Agent:
    def __init__(self):
        self.session = None
        self.ids = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.ask("initialize", hello)
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        request = urllib.request.Request(f"{URL}/mcp", json.dumps(message).encode(), headers)
        answer = urllib.request.urlopen(request, timeout=PATIENCE)
        self.session = answer.headers.get("Mcp-Session-Id", self.session)
        return answer.read().decode()

    def ask(self, method, params):
        self.ids += 1
        text = self.post({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        events = re.findall(r"^data: ?(\{.*\})$", text, re.MULTILINE) or [text]
        answers = [message for message in map(json.loads, events) if message.get("id") == self.ids]
        assert len(answers) == 1 and "result" in answers[0], text
        return answers[0]["result"]

    def call(self, tool, arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]

    def tools(self):
        return {tool["name"] for tool in self.ask("tools/list", {})["tools"]}


# --- The steps ---

def install():
    said = apt("install", *glob.glob("/srv/debs/*.deb"))
    assert run("dpkg", "-V", EXTENSION, "pml") == "", "dpkg -V finds changes"
    assert service("ActiveState") == "inactive" and service("UnitFileState") == "disabled", "it must not start by itself"
    user = pwd.getpwnam("pml")
    assert user.pw_dir == str(HOME) and user.pw_shell.endswith("nologin"), user
    status = CONFIG.stat()
    assert (status.st_mode & 0o777, status.st_uid, status.st_gid) == (0o640, 0, user.pw_gid), status
    databases = sql("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database", "postgres")
    assert databases == "postgres template0 template1", f"installing must not change the cluster: {databases}"
    return said


def follow(said):
    """Runs the commands that postinst prints, as they are."""
    commands = "\n".join(line.strip() for line in said.splitlines() if line.startswith("  "))
    assert "createdb" in commands and "systemctl enable --now pml" in commands, said
    run("sh", "-e", "-c", commands)
    eventually("it is ready", lambda: get("/readyz"))
    doctor = run("runuser", "-u", "pml", "--", "pml", "doctor", "--config", str(CONFIG))
    assert "BROKEN" not in doctor, doctor


def confined():
    process = Path("/proc") / service("MainPID")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
    assert process.stat().st_uid == pwd.getpwnam("pml").pw_uid
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and int(status["CapBnd"], 16) == 0, status
    run("systemd-analyze", "verify", "--man=no", "/lib/systemd/system/pml.service")
    run("systemd-analyze", "security", "--offline=true", "--threshold=30", "/lib/systemd/system/pml.service")


def documented():
    for page in ("pml", "pml-serve", "pml-token-create", "pml-worker"):
        assert Path(f"/usr/share/man/man1/{page}.1.gz").exists(), page
    source = ". /usr/share/bash-completion/completions/pml; COMP_WORDS=(pml do) COMP_CWORD=1; _pml pml do pml; echo ${COMPREPLY[@]}"
    assert run("bash", "-c", source).strip() == "doctor"
    for package in (EXTENSION, "pml"):
        assert "MIT" in Path(f"/usr/share/doc/{package}/copyright").read_text()
    assert "rquickjs-sys" in run("zcat", "/usr/share/doc/pml/THIRD-PARTY-LICENCES.gz")
    doors = run("runuser", "-u", "pml", "--", "pml-worker", "doors")
    assert "read a file" in doors, doors


def agent_session():
    """The README's, with its folder where the service can see it."""
    folder = Path("/srv/demo")
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "team.json").write_text('{"team": "PML", "people": 3}\n')
    (folder / "other.json").write_text('{"team": "other"}\n')
    modules = Path("/srv/peers/node_modules")
    server = {"command": str(modules / "node/bin/node"),
              "args": [str(modules / "@modelcontextprotocol/server-filesystem/dist/index.js"), str(folder), str(HOME)]}
    CONFIG.write_text(json.dumps({**json.loads(CONFIG.read_text()), "mcpServers": {"filesystem": server}}))
    run("systemctl", "restart", "pml")
    eventually("it is ready", lambda: get("/readyz"))

    agent = Agent()
    request = json.loads(next(text for language, text in blocks("From an agent") if language == "json"))
    request["args"]["path"] = str(folder / "team.json")
    answer = agent.call("pml_execute", request)
    assert answer["status"] == "success" and answer["result"] == {"team": "PML", "people": 3}, answer
    assert answer["capabilityName"] == "fs:load_json", answer
    assert "mcp__fs__load_json" in agent.tools()
    assert agent.call("mcp__fs__load_json", {"path": str(folder / "other.json")}) == {"team": "other"}

    step("a server on stdio may write below the service's home, and nowhere else")
    write = "await mcp.filesystem.write_file({ path: args.path, content: 'x' }); return true"
    agent.call("pml_execute", {"intent": "write", "code": write, "args": {"path": str(HOME / "kept.txt")}})
    assert (HOME / "kept.txt").read_text() == "x"
    refused = agent.ask("tools/call", {"name": "pml_execute", "arguments": {
        "intent": "write", "code": write, "args": {"path": str(folder / "refused.txt")}}})
    assert refused.get("isError") and not (folder / "refused.txt").exists(), refused
    return agent


def reload_and_stop(agent):
    process = service("MainPID")
    run("systemctl", "reload", "pml")
    eventually("it says so", lambda: "nothing to reload" in run("journalctl", "-u", "pml", "--no-pager"))
    assert service("ActiveState") == "active" and service("MainPID") == process

    step("a call that runs when the service stops is answered")
    answers = []
    slow = {"intent": "wait", "code": "await new Promise(done => setTimeout(done, 2000)); return 7"}
    thread = threading.Thread(target=lambda: answers.append(agent.call("pml_execute", slow)))
    thread.start()
    eventually("the call runs", lambda: re.search(r"^pml_worker_slots_used 1$", get("/metrics"), re.MULTILINE))
    run("systemctl", "stop", "pml")
    thread.join()
    assert answers and answers[0]["result"] == 7, answers
    assert service("Result") == "success", service("Result")
    left = run("ps", "-u", "pml", "-o", "args=", check=False).strip()
    assert left == "", f"still running: {left}"


def upgrade():
    """To the same packages under a later version."""
    run("systemctl", "start", "pml")
    eventually("it is ready", lambda: get("/readyz"))
    before, config = service("MainPID"), CONFIG.read_text()
    newer = []
    for package in glob.glob("/srv/debs/*.deb"):
        folder = "/tmp/newer"
        run("rm", "-rf", folder)
        run("dpkg-deb", "-R", package, folder)
        control = Path(folder, "DEBIAN/control")
        control.write_text(re.sub(r"^Version: .*$", r"\g<0>+newer", control.read_text(), flags=re.MULTILINE))
        newer.append(f"/tmp/{Path(package).name}")
        run("dpkg-deb", "-Znone", "-b", folder, newer[-1])
    said = apt("install", *newer)
    assert "ALTER EXTENSION pml UPDATE" in said and "createdb" not in said, said
    assert service("MainPID") not in (before, "0"), "an upgrade restarts the service"
    eventually("it is ready", lambda: get("/readyz"))
    assert CONFIG.read_text() == config, "the administrator's configuration stays"
    assert CONFIG.stat().st_gid == pwd.getpwnam("pml").pw_gid


def remove(count):
    apt("remove", "pml", EXTENSION)
    assert not Path("/usr/bin/pml").exists()
    assert not Path(f"/usr/lib/postgresql/{MAJOR}/lib/pml.so").exists()
    assert run("ps", "-u", "pml", "-o", "args=", check=False).strip() == "", "the service must be stopped"
    assert CONFIG.exists() and HOME.exists(), "removing keeps configuration and state"

    step("what was in the database is there again when the extension is")
    apt("install", f"/srv/debs/{Path(glob.glob(f'/srv/debs/{EXTENSION}_*.deb')[0]).name}")
    assert sql("SELECT count(*) FROM pml.capability_records") == count
    assert ".fs.load_json." in sql("SELECT pml_resolve('fs:load_json')")


def purge(before):
    apt("purge", "pml", EXTENSION)
    run("systemctl", "daemon-reload")
    left = files() - before
    assert left == set(), f"left behind: {sorted(left)}"
    assert before - files() == set(), f"gone: {sorted(before - files())}"
    assert sql("SELECT count(*) FROM pml.capability_records") == COUNT["records"], "the database is the user's"
    assert run("dpkg-query", "-W", "-f", "${Package} ${Status}\n", "*pml*", check=False).count("config-files") == 0


COUNT = {}


def main():
    eventually("Postgres accepts connections", lambda: sql("SELECT 1", "postgres"))
    before = files()
    step("install: nothing starts, no cluster changes")
    said = install()
    step("what postinst prints works as it stands")
    follow(said)
    step("the service is confined")
    confined()
    step("man pages, completions, licences, the sandbox's doors")
    documented()
    step("the README's session in SQL")
    sql_session()
    step("the README's session of an agent")
    agent = agent_session()
    step("reload")
    reload_and_stop(agent)
    step("upgrade")
    upgrade()
    COUNT["records"] = sql("SELECT count(*) FROM pml.capability_records")
    step("remove")
    remove(COUNT["records"])
    step("purge")
    purge(before)
    print("The packages work.", flush=True)


if __name__ == "__main__":
    main()
