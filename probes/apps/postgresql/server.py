"""PostgreSQL's programs, run as its user."""

import re
import subprocess

BIN = "/usr/lib/postgresql/15/bin"
AS_POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
OPTIONS = "-c listen_addresses='' -c unix_socket_directories=/tmp"


def run(program, *words, text=None):
    """What the program prints, run as the user postgres; raises RuntimeError with its last words where it fails."""
    command = [*AS_POSTGRES, f"{BIN}/{program}", *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd="/tmp")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if re.search("FATAL|PANIC|ERROR|error", line)]
        raise RuntimeError(f"{program} ends with {done.returncode}: {(lines or [done.stderr.strip()])[-1]}")
    return done.stdout


def sql(text):
    """The rows, as lines, that a running server answers."""
    return run("psql", "-h", "/tmp", "-d", "postgres", "-AtqX", "-v", "ON_ERROR_STOP=1", "-c", text)


def insert(n):
    """A transaction of a row in each table."""
    rows = [f"INSERT INTO {table} VALUES ({n}, repeat('{table}', 1500))" for table in "ab"]
    sql(f"BEGIN; {'; '.join(rows)}; COMMIT")
