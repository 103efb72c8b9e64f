"""Derive the effects of a program's system calls. If a call changes a file in a way that bob does not know, bob no
longer *follows* that file. This means that bob concludes nothing from the file's contents in crash states."""

import posixpath
from collections.abc import Callable, Mapping, Sequence

from bob.errors import RecordingError
from bob.observe.observation import Node
from bob.program.processes import PerProcess
from bob.program.stack import caller
from bob.program.strace import EXECUTES, FORKS, WRITES, SystemCall, name_of
from bob.program.untraced import HARMLESS, RENAMES, is_exchange
from bob.protocol import arguments as args
from bob.protocol.descriptors import Mappings, OpenFile
from bob.protocol.effects import AT_FIRST, ROOT_FILE, Deed, Effects, StoredBytes, Version, handle
from bob.protocol.path_resolver import PathResolver
from bob.text import printable
from bob.workload import operations as ops
from bob.workload.language import UNOBSERVED
from bob.workload.operations import How, Operation, Replacing


def follow(calls: Sequence[SystemCall], root: str, tree: Mapping[str, Node]) -> Effects:
    """Return the effects of ``calls`` on ``tree``, which is the initial tree below ``root``."""
    follower = _Follower(tuple(calls), root, tree)
    for number, call in enumerate(calls):
        follower.take(number, call)
    return follower.complete()


class _Follower:
    """A follower of the calls of a program. It adds the effect of each call, in order, to ``effects``."""

    def __init__(self, calls: tuple[SystemCall, ...], root: str, tree: Mapping[str, Node]) -> None:
        self.effects = Effects.of_tree(tree)
        self._calls, self._root = calls, root
        self._meant = PathResolver(calls, root, self.effects)
        self._paths, self._descriptors = self._meant.paths, self._meant.descriptors
        self._mapped = Mappings(calls)
        self._programs = PerProcess[str](calls, "CLONE_VM", str, str)
        self._number = AT_FIRST

    def take(self, number: int, call: SystemCall) -> None:
        self._number, name = number, call.name
        if call.result is None:
            return
        first = number
        while first and self._calls[first - 1].done > call.begun:
            first -= 1
        if first < number:
            self.effects.begun[number] = first
        self._meant.take(call)
        self._mapped.take(call)
        if name in FORKS:
            self._programs.forked(call)
        elif name in EXECUTES:
            started = call.arguments[0] if name == "execve" else call.arguments[1]
            self._programs.put(call.pid, posixpath.basename(args.text(started)))
        elif effect := _EFFECTS.get(name):
            effect(self, call)

    def complete(self) -> Effects:
        self.effects.untold.extend(f"a call on {path}, through a link" for path in self._paths.through_links)
        return self.effects

    def _sync(self, call: SystemCall) -> None:
        name = call.name
        path = self._paths.below(call.path(0)) if call.arguments else ""
        if not (path or name in ("sync", "syncfs") or self._is_root(call)):
            return
        open_file = self._descriptors.at(call, 0) if path else OpenFile(ROOT_FILE)
        of = self._meant.words(open_file.file, path) if path and open_file else path or "/"
        self._say(call, f"{name} {of}" if name != "sync" else "sync")
        if name == "sync" or (name == "syncfs" and (path or self._is_root(call))):
            self._do(ops.Sync(this_only=name == "syncfs"), ROOT_FILE)
        elif name in ("fsync", "fdatasync", "sync_file_range"):
            file = open_file.file if open_file else self._meant.file_at(path)
            if file is not None:
                named = self._meant.name(file, path or "/")
                is_part = name == "sync_file_range"
                self._do(ops.SyncFileRange(named, 0, 0) if is_part else ops.Fsync(named, name == "fdatasync"), file)

    def _make(self, call: SystemCall) -> None:
        name, call = call.name, args.as_mknod(call)
        place = {**args.MAKES, **args.SYMLINKS}.get(call.name)
        path = "" if place is None else self._paths.at(call, place)
        if not path:
            return
        kind = "symlink" if name in args.SYMLINKS else "directory" if name in ("mkdir", "mkdirat") else "other"
        special = next((one for word, one in args.SPECIAL.items() if word in call.arguments[-1]), None)
        file = self.effects.new(kind)
        self.effects.lead(self._number, path, file)
        self._say(call, f"{name} {path}")
        if kind == "symlink":
            self.effects.files[file].target = target = name_of(call.arguments[0])
            self._do(ops.Symlink(target, path), file)
        elif kind == "directory":
            self._do(ops.Mkdir(path), file, mode=self._meant.mode_of(call))
        elif special is not None:
            self._do(ops.Mknod(path, special), file, mode=self._meant.mode_of(call))
        else:
            self.effects.untold.append(f"{call.name} of {path}")

    def _remove(self, call: SystemCall) -> None:
        path = self._paths.at(call, args.REMOVES[call.name])
        if path:
            is_folder = call.name == "rmdir" or "AT_REMOVEDIR" in call.arguments[-1]
            self._meant.removed[path] = removed = self.effects.leads(path) or ROOT_FILE
            self.effects.lead(self._number, path, None)
            self._say(call, f"{'rmdir' if is_folder else call.name} {path}")
            self._do(ops.Rmdir(path) if is_folder else ops.Unlink(path), removed)

    def _leave_out(self, call: SystemCall) -> None:
        place = args.TIMES.get(call.name, 0)
        is_named = call.arguments[place].startswith('"')
        if path := self._paths.at(call, place) if is_named else self._paths.below(call.path(0)):
            self.effects.left_out.append(f"{call.name} of {path}")

    def _change_root(self, call: SystemCall) -> None:
        self.effects.untold.append(call.name)  # from now on bob does not know which files names mean

    def _open(self, call: SystemCall) -> None:
        assert call.result is not None
        flags, how = args.flags_of(call), args.how_opened(call)
        path = self._paths.below(call.opened)
        self._paths.opened(call, args.OPENS[call.name])
        if "O_TMPFILE" in flags or not call.opened:  # strace shows a name even for a file that was opened without one
            folder = self._paths.of_guest(call, args.OPENS[call.name], follows=True)
            path = "/" if folder.endswith(self._root) else self._paths.below(folder)
        file: int | None = None
        if path and "O_TMPFILE" in flags:
            file = self.effects.new("file")
            self._do(ops.Unnamed(path, handle(file)), file, mode=self._meant.mode_of(call))
        elif path:
            file = self.effects.leads(path)
            if file is None and "O_CREAT" in flags:
                file = self.effects.new("file")
                self.effects.files[file].sizes.append(Version(AT_FIRST, 0))
                self.effects.lead(self._number, path, file)
                self._say(call, f"create {path}")
                self._do(ops.Create(path), file, mode=self._meant.mode_of(call))
            elif file is not None and "O_TRUNC" in flags and self.effects.files[file].size:
                self.effects.cut(self._number, file, 0)
                self._say(call, f"open {path} with O_TRUNC")
                self._do(ops.Truncate(path, 0), file)
        reads_only = not any(flag in flags for flag in ("O_RDWR", "O_WRONLY"))
        made = None if file is None else OpenFile(file, "O_APPEND" in flags, how=how, reads_only=reads_only)
        self._descriptors.opened(call, made)

    def _write(self, call: SystemCall) -> None:
        path = self._paths.below(call.path(0))
        if not path or not call.result:
            return
        open_file = self._descriptors.at(call, 0)
        if open_file is None:
            self._unfollowed(self._meant.file_at(path), f"{call.name} to {path}")
            return
        if self.effects.files[open_file.file].kind != "file":
            return  # no crash state shows data in a FIFO
        start = open_file.start_of(call, self.effects.files[open_file.file].size)
        try:
            data = call.written
        except RecordingError:  # strace has not written down all bytes
            self._unfollowed(open_file.file, f"{call.name} of much to {path}")
            return
        self._store(call, open_file, path, start, data)

    def _store(
        self, call: SystemCall, open_file: OpenFile, path: str, start: int, data: bytes, verb: str = "overwrite"
    ) -> None:
        file, end = self.effects.files[open_file.file], start + len(data)
        is_append = end > file.size
        file.stored.append(Version(self._number, StoredBytes(start, end, data)))
        if is_append:
            file.sizes.append(Version(self._number, end))
        words = self._meant.words(open_file.file, path)
        self._say(call, f"{'append' if is_append else verb} {len(data)} bytes at {start} of {words}")
        how = args.how_of(call) or open_file.how
        self._do(ops.Write(self._meant.name(open_file.file, path), start, len(data), how), open_file.file, data)

    def _map(self, call: SystemCall) -> None:
        open_file, path = self._descriptors.at(call, 4), self._paths.below(call.path(4))
        if open_file is None:
            self._unfollowed(self._meant.file_at(path), f"mmap of {path}")
        else:
            self._mapped.add(call, open_file.file, is_watched=True)

    def _map_to_read(self, call: SystemCall) -> None:
        """Add a mapping through which the program cannot store. An msync(2) of it still syncs the file, if the file is
        open for writing (do_mmap, mm/mmap.c)."""
        open_file = self._descriptors.at(call, 4)
        if "MAP_SHARED" in call.arguments[3] and not (open_file and open_file.reads_only):
            self._mapped.add(call, open_file.file if open_file else None)

    def _store_mapped(self, call: SystemCall) -> None:
        """Add the effect of a store to a mapped file. Leave out bytes at the beginning and the end of the store that
        the file already has."""
        file = self._mapped.by_path.get(call.path(0))
        if file is None:
            return  # bob does not watch this mapping
        start, data = int(call.arguments[3], 0), call.written
        there = self.effects.files[file].read(start, start + len(data))
        differing = [at for at, (old, new) in enumerate(zip(there, data, strict=True)) if old != new]
        if differing:
            first, end = differing[0], differing[-1] + 1
            path = self._paths.below(call.path(0))
            self._store(call, OpenFile(file, how=How.MMAP), path, start + first, data[first:end], "store")

    def _sync_mapping(self, call: SystemCall) -> None:
        """Add the effect of an msync(2). If its range includes all bytes that calls have changed in the file, it counts
        as a sync of the file. If its range includes less, bob does not know its effect."""
        found = self._mapped.at(call)
        if "MS_SYNC" not in call.arguments[2] or (found is None and not self._mapped.are_some):
            return
        if found is None:
            self.effects.untold.append("msync of a mapping that bob has not seen made")
            return
        if found.file is None:
            return
        path, of = self._paths.below(found.path), self.effects.files[found.file]
        self._say(call, f"msync {path}")
        changed = [(one.value.start, one.value.end) for one in of.stored if one.call != AT_FIRST]
        if any(start < found.start or found.end < end for start, end in changed):
            self._unfollowed(found.file, f"msync of a part of {path}")
        else:
            self._do(ops.Msync(self._meant.name(found.file, path)), found.file)

    def _copy(self, call: SystemCall) -> None:
        """Add the effect of a copy between two files that the kernel makes. bob knows the copied bytes only if it
        follows the file that they come from."""
        copy = args.copy_of(call)
        path = self._paths.below(call.path(copy.into))
        source, target = self._descriptors.at(call, copy.out_of), self._descriptors.at(call, copy.into)
        begin = source.moved_on(call.result or 0) if source and copy.begin is None else copy.begin or 0
        if not path or not call.result:
            return
        start = target.moved_on(call.result) if target and copy.start is None else copy.start or 0
        if source is None or target is None or not self.effects.files[source.file].followed:
            self._unfollowed(self._meant.file_at(path), f"{call.name} to {path}")
            return
        if source.file == target.file and abs(start - begin) < call.result:
            # sendfile may read bytes that it has itself just written (copy_file_range refuses overlapping ranges)
            self._unfollowed(target.file, f"{call.name} of {path} to an overlapping range of itself")
            return
        data = self.effects.files[source.file].read(begin, begin + call.result)
        self._store(call, target, path, start, data)

    def _truncate(self, call: SystemCall) -> None:
        size = int(call.arguments[1], 0)
        path, file = self._meant.about(call, args.TRUNCATES)
        if path and file is None:
            self._unfollowed(self._meant.file_at(path), f"{call.name} of {path}")
        elif path and file is not None and size != self.effects.files[file].size:
            self.effects.cut(self._number, file, size)
            self._say(call, f"truncate {self._meant.words(file, path)} to {size} bytes")
            self._do(ops.Truncate(self._meant.name(file, path), size), file)

    def _fallocate(self, call: SystemCall) -> None:
        path, open_file = self._paths.below(call.path(0)), self._descriptors.at(call, 0)
        if not path:
            return
        mode, start, length = call.arguments[1], int(call.arguments[2], 0), int(call.arguments[3], 0)
        if open_file is None or any(word in mode for word in ("COLLAPSE", "INSERT", "UNSHARE")):
            self._unfollowed(self._meant.file_at(path), f"fallocate ({mode}) of {path}")
            return
        file, end = self.effects.files[open_file.file], start + length
        if "PUNCH_HOLE" in mode or "ZERO_RANGE" in mode:
            file.stored.append(Version(self._number, StoredBytes(start, end, None)))
        if "KEEP_SIZE" not in mode and end > file.size:
            file.sizes.append(Version(self._number, end))
        self._say(call, f"fallocate {length} bytes at {start} of {self._meant.words(open_file.file, path)}")
        self._do(
            ops.Fallocate(self._meant.name(open_file.file, path), start, length, args.allocation(mode)), open_file.file
        )

    def _rename(self, call: SystemCall) -> None:
        old, new = (self._paths.at(call, place) for place in RENAMES[call.name])
        if not old or not new:
            for path in filter(None, (old, new)):
                self._unfollowed(self.effects.leads(path), f"{call.name} of {path}")
            return
        moved, replaced = self.effects.leads(old), self.effects.leads(new)
        if moved is not None and moved == replaced:
            return  # both names are of one file: rename(2) does nothing
        exchanges = is_exchange(call)
        if replaced is not None and not exchanges:
            self._meant.removed[new] = replaced
        self.effects.lead(self._number, old, replaced if exchanges else None)
        self.effects.lead(self._number, new, moved)
        self._paths.moved({old: new, new: old} if exchanges else {old: new})
        self._say(call, f"exchange {old} and {new}" if exchanges else f"rename {old} to {new}")
        if moved is None:
            self.effects.untold.append(f"{call.name} of {old}")
        else:
            self._do(ops.Rename(old, new, Replacing.EXCHANGE if exchanges else Replacing.REPLACE), moved)

    def _link(self, call: SystemCall) -> None:
        new = self._paths.at(call, args.LINKS[call.name][1])
        old, file = self._meant.linked(call)
        if new:
            self.effects.lead(self._number, new, self.effects.new("file") if file is None else file)
            if file is None:  # bob has not seen the call that opened it
                self._unfollowed(self.effects.leads(new), f"{call.name} of {new}")
            else:
                self._do(ops.Link(old or handle(file), new), file)
            self._say(call, f"link {old or 'a file without a name'} as {new}")

    def _mode(self, call: SystemCall) -> None:
        path, file = self._meant.about(call, args.MODES)
        if path and file is None:
            self._unknown(call, path)
        elif path and file is not None:
            mode = args.permissions(call.arguments[args.MODES.get(call.name, 0) + 1])
            self._do(ops.Chmod(self._meant.name(file, path), mode), file)
            modes = self.effects.files[file].modes
            if modes and modes[-1].value != mode:
                modes.append(Version(self._number, mode))
                self._say(call, f"chmod {path} to 0{mode:o}")

    def _owner(self, call: SystemCall) -> None:
        path, file = self._meant.about(call, args.OWNERS)
        place = args.OWNERS.get(call.name, 0)
        if path and file is None:
            self._unknown(call, path)
        elif path and file is not None:
            uid, gid = (args.identity(argument) for argument in call.arguments[place + 1 : place + 3])
            self._do(ops.Chown(self._meant.name(file, path), uid, gid), file)

    def _unknown(self, call: SystemCall, path: str) -> None:
        """Remember that the call acts on a file that bob does not know. Do nothing if the path is one that bob leaves
        out when it reads a tree of files (``UNOBSERVED``)."""
        if path.split("/")[1] not in UNOBSERVED:
            self.effects.untold.append(f"{call.name} of {path}")

    def _lose_sight(self, call: SystemCall) -> None:
        if call.name == "ioctl" and any(word in call.arguments[1] for word in HARMLESS):
            return
        if call.name == "mmap" and not ("PROT_WRITE" in call.arguments[2] and "MAP_SHARED" in call.arguments[3]):
            self._map_to_read(call)
            return
        if path := self._paths.below(call.path(args.INTO[call.name])):
            self._unfollowed(self._meant.file_at(path), f"{call.name} of {path}")
        elif call.name == "splice" and call.arguments[1] == "NULL" and (source := self._descriptors.at(call, 0)):
            source.moved_on(call.result or 0)

    def _is_root(self, call: SystemCall) -> bool:
        return bool(call.arguments) and call.path(0).endswith(self._root)

    def _say(self, call: SystemCall, words: str) -> None:
        program, function = self._programs.of(call.pid), caller(call.stack)
        where = f"{words} ({function})" if function else words
        self.effects.words[self._number] = printable(f"{program}: {where}" if program else where)

    def _unfollowed(self, file: int | None, words: str) -> None:
        self.effects.untold.append(words)
        if file is not None:
            self.effects.files[file].followed = False

    def _do(self, operation: Operation, file: int, data: bytes = b"", mode: int = 0o644) -> None:
        self.effects.deeds.append(Deed(self._number, operation, file, data, mode))


_EFFECTS: Mapping[str, Callable[[_Follower, SystemCall], None]] = {
    **dict.fromkeys(args.SYNCS, _Follower._sync),
    **dict.fromkeys(args.OPENS, _Follower._open),
    **dict.fromkeys(WRITES, _Follower._write),
    **dict.fromkeys(RENAMES, _Follower._rename),
    **dict.fromkeys(args.LINKS, _Follower._link),
    **dict.fromkeys(("bind", *args.MAKES, *args.SYMLINKS), _Follower._make),
    **dict.fromkeys(args.REMOVES, _Follower._remove),
    **dict.fromkeys(("fchmod", *args.MODES), _Follower._mode),
    **dict.fromkeys(("fchown", *args.OWNERS), _Follower._owner),
    **dict.fromkeys((*args.TIMES, *args.EXTENDED), _Follower._leave_out),
    **dict.fromkeys(args.COPIES, _Follower._copy),
    **dict.fromkeys(args.INTO, _Follower._lose_sight),
    **dict.fromkeys(("truncate", "ftruncate"), _Follower._truncate),
    "fallocate": _Follower._fallocate,
    "msync": _Follower._sync_mapping,
    "chroot": _Follower._change_root,
    args.MAPPED: _Follower._map,
    args.STORE: _Follower._store_mapped,
}
