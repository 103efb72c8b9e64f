"""A small replicated key-value store. A node has a log, a snapshot of older entries, and its vote, each in a file. A
leader copies its log to the others, and acknowledges an entry that a majority has on disk. The store also has a title,
in a file of its own that a rename replaces."""

import json
import os
import socket
import sys
import threading
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
with open(f"{HERE}/faults") as switches:
    FAULTS = set(switches.read().split())
PORT, MOST_IN_LOG = 7000, 2
# What each word in `faults` plants:
#   no-fsync              a log entry is not synced
#   late-fsync            a log entry is synced a second later
#   sync-before-write     the log is synced before the entry is written
#   followers-no-fsync    a follower does not sync a log entry
#   no-directory-fsync    the directory is not synced after a file was made or renamed
#   ack-from-memory       a follower answers a second before it writes the entry
#   ack-before-majority   the leader acknowledges what only it has
#   vote-ignores-log      a node votes for a candidate with an older log
#   vote-not-synced       the file with term and vote is renamed before its data is synced
#   snapshot-not-synced   the snapshot is renamed before its data is synced
#   log-cut-first         the log is emptied a second before the snapshot is there
#   no-checksum           a torn log entry counts as an entry

def call(number, timeout=1.0, **request):
    """The answer of a node, or None."""
    try:
        with socket.create_connection((f"10.9.0.{10 + number}", PORT), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(connection.makefile().readline())
    except (OSError, ValueError):
        return None


def ask(root, seconds, **request):
    """The leader's answer to a client, or None after some seconds."""
    until = time.monotonic() + seconds
    while True:
        for number in range(len(os.listdir(root))):
            answer = call(number, 3.0, **request)
            if answer is not None and answer.get("ok"):
                return answer
        if time.monotonic() > until:
            return None
        time.sleep(0.1)


class Member:
    def __init__(self, number, folder, count):
        self.number, self.folder = number, folder
        self.others = [other for other in range(count) if other != number]
        self.majority = count // 2 + 1
        self.lock = threading.RLock()
        self.leads, self.heard = False, time.monotonic()
        self.base, self.base_term, self.values = self.read_json("snapshot", [0, 0, {}])
        self.term, self.voted = self.read_json("vote", [0, None])
        self.title = self.read_json("title", [0, ""])  # its version, and the text
        self.entries = []  # of [term, key, value], after the first `base`
        is_new = not os.path.exists(f"{folder}/log")
        self.log = os.open(f"{folder}/log", os.O_RDWR | os.O_CREAT)
        if is_new:
            self.sync_directory()
        self.read_log()
        if self.last_term > self.term:
            sys.exit(f"the log has an entry of term {self.last_term}, but the vote is of term {self.term}")

    # Files

    def read_json(self, name, missing):
        if not os.path.exists(f"{self.folder}/{name}"):
            return missing
        with open(f"{self.folder}/{name}") as file:
            return json.load(file)

    def write_json(self, name, value, synced=True):
        with open(f"{self.folder}/{name}.new", "w") as file:
            json.dump(value, file)
            file.flush()
            if synced:
                os.fsync(file.fileno())
        os.rename(f"{self.folder}/{name}.new", f"{self.folder}/{name}")
        self.sync_directory()

    def sync_directory(self):
        if "no-directory-fsync" not in FAULTS:
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def read_log(self):
        """Each line is a checksum, an index and an entry. Behind a torn line nothing counts. The first lines may be in
        the snapshot, too."""
        self.start = good = 0
        for line in os.pread(self.log, 1 << 20, 0).split(b"\n")[:-1]:
            head, _, text = line.partition(b" ")
            if "no-checksum" not in FAULTS and head != b"%08x" % zlib.crc32(text):
                break
            index, entry = json.loads(text)
            if index > self.base:
                if index != self.last + 1 or entry[0] < self.last_term:
                    break
                self.entries.append(entry)
            good += len(line) + 1
            if index <= self.base:
                self.start = good
        os.ftruncate(self.log, good)

    def write_log(self, entries, is_follower):
        """Write the log again from its first entry that changes."""
        kept = 0
        while kept < min(len(entries), len(self.entries)) and entries[kept] == self.entries[kept]:
            kept += 1
        if kept == len(entries) == len(self.entries):
            return
        self.entries = entries
        texts = [json.dumps([self.base + 1 + place, entry]).encode() for place, entry in enumerate(entries)]
        lines = [b"%08x %s\n" % (zlib.crc32(text), text) for text in texts]
        place = self.start + sum(map(len, lines[:kept]))
        os.ftruncate(self.log, place)
        if "sync-before-write" in FAULTS:
            os.fsync(self.log)
        os.pwrite(self.log, b"".join(lines[kept:]), place)
        if "late-fsync" in FAULTS:
            threading.Timer(1.0, os.fsync, [self.log]).start()
        elif not FAULTS & {"no-fsync", "sync-before-write"} and not (is_follower and "followers-no-fsync" in FAULTS):
            os.fsync(self.log)

    def keep_vote(self):
        self.write_json("vote", [self.term, self.voted], "vote-not-synced" not in FAULTS)

    def take_snapshot(self, base, base_term, values, entries):
        self.base, self.base_term, self.values = base, base_term, values
        written = "snapshot", [base, base_term, values], "snapshot-not-synced" not in FAULTS
        if "log-cut-first" in FAULTS:
            os.ftruncate(self.log, 0)
            os.fsync(self.log)
            threading.Timer(1.0, self.write_json, written).start()
        else:
            self.write_json(*written)
        self.entries, self.start = [], 0
        os.ftruncate(self.log, 0)
        self.write_log(entries, is_follower=False)

    # What a node knows

    @property
    def place(self):
        """When this node stands for election: the nodes take turns, so after a restart another node is first."""
        return (self.number + self.term) % (1 + len(self.others))

    @property
    def last(self):
        return self.base + len(self.entries)

    @property
    def last_term(self):
        return self.entries[-1][0] if self.entries else self.base_term

    def value(self, key):
        found = dict(self.values)
        found.update({name: text for _term, name, text in self.entries})
        return found.get(key)

    def see(self, term):
        """Another node has a later term: follow."""
        if term > self.term:
            self.term, self.voted, self.leads = term, None, False
            self.keep_vote()

    # Requests

    def answer(self, request):
        with self.lock:
            if "vote" in request:
                return self.vote(*request["vote"])
            if "append" in request:
                return self.append(*request["append"])
            if "look" in request:
                return {"recovered": [self.base, self.base_term, self.values, self.entries, self.title, self.term]}
            if "keep" in request:
                return self.keep_title(*request["keep"])
            if not self.leads:
                return {"ok": False}
            if "title" in request:
                return self.change_title(request["title"])
            if "get" in request:
                return {"ok": self.copied(), "value": self.value(request["get"])}
            self.write_log([*self.entries, [self.term, *request["set"]]], is_follower=False)
            done = {"ok": True} if "ack-before-majority" in FAULTS else {"ok": self.copied()}
            if done["ok"] and len(self.entries) >= MOST_IN_LOG:
                everything = {**self.values, **{key: value for _term, key, value in self.entries}}
                self.take_snapshot(self.last, self.last_term, everything, [])
            return done

    def vote(self, term, candidate, last_term, last):
        self.see(term)
        is_older = (last_term, last) < (self.last_term, self.last) and "vote-ignores-log" not in FAULTS
        if term < self.term or is_older or self.voted not in (None, candidate):
            return {"ok": False, "term": self.term}
        self.voted, self.heard = candidate, time.monotonic()
        self.keep_vote()
        return {"ok": True, "term": self.term}

    def keep_title(self, version, text):
        """Keep a later title. Answer with the latest one."""
        if version > self.title[0]:
            self.title = [version, text]
            self.write_json("title", self.title)
        return {"ok": True, "title": self.title}

    def change_title(self, text):
        """Replace the title, unless the text is empty. Answer with the latest title of a majority."""
        answers = [answer for other in self.others if (answer := call(other, keep=self.title))]
        self.keep_title(*max(answer["title"] for answer in [*answers, {"title": self.title}]))
        if text:
            self.keep_title(self.title[0] + 1, text)
            answers = [answer for other in self.others if (answer := call(other, keep=self.title))]
        return {"ok": 1 + len(answers) >= self.majority, "title": self.title[1]}

    def append(self, term, base, base_term, values, entries):
        """Take over the leader's snapshot and log."""
        if term < self.term:
            return {"ok": False, "term": self.term}
        self.see(term)
        self.leads, self.heard = False, time.monotonic()

        def take():
            if base != self.base:
                self.take_snapshot(base, base_term, values, entries)
            self.write_log(entries, is_follower=True)

        if "ack-from-memory" in FAULTS:
            threading.Timer(1.0, take).start()
        else:
            take()
        return {"ok": True, "term": self.term}

    # Leading

    def copied(self):
        """Copy the snapshot and the log to the others, until a majority has them; the rest gets them with the next
        heartbeat. Return whether a majority has them."""
        return self.copy(self.majority)

    def copy(self, enough):
        request = [self.term, self.base, self.base_term, self.values, self.entries]
        have = 1
        for other in self.others:
            answer = call(other, append=request) if have < enough else None
            if answer:
                self.see(answer["term"])
                have += answer["ok"]
        return self.leads and have >= self.majority

    def stand(self):
        self.term, self.voted = self.term + 1, self.number
        self.keep_vote()
        request = [self.term, self.number, self.last_term, self.last]
        answers = [answer for other in self.others if (answer := call(other, vote=request))]
        for answer in answers:
            self.see(answer["term"])
        self.leads = self.voted == self.number and 1 + sum(answer["ok"] for answer in answers) >= self.majority

    def keep_time(self):
        while True:
            time.sleep(0.2)
            with self.lock:
                if self.leads:
                    self.copy(1 + len(self.others))
                elif time.monotonic() - self.heard > 0.6 + 0.5 * self.place:
                    self.heard = time.monotonic()
                    self.stand()

    def serve(self, connection):
        with connection:
            connection.settimeout(3.0)
            try:
                request = json.loads(connection.makefile().readline())
                connection.sendall(json.dumps(self.answer(request)).encode() + b"\n")
            except (OSError, ValueError):
                return

    def run(self):
        listener = socket.create_server(("", PORT))
        threading.Thread(target=self.keep_time, daemon=True).start()
        while True:
            connection, _address = listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()
