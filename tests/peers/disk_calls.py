#!/usr/bin/env python3
"""Runs a program and watches the calls by which it changes or syncs the files below a folder, over all of its threads.

Such calls are let through one at a time, so that their order is the order in which they take effect.

  disk_calls.py FOLDER LOG [--kill before|after N | --fail CALL NAME ERRNO] -- PROGRAM ARGUMENT…

LOG gets one JSON object a call, in the order in which they ended, with paths relative to FOLDER:

  {"call": "create" | "truncate" | "write" | "sync" | "link" | "rename" | "remove" | "mkdir", "path": …, "ok": …}
                                          with "to" for a link or rename, "at" and "bytes" (as Latin-1) for a write
  {"call": "answer", "ok": …}             the program wrote to stdout

`--kill` ends the whole process by SIGKILL when call N (from 1, answers not counted) begins, which it then does not carry
out, or when it has ended. `--fail` keeps every CALL on the file or folder NAME from the system, and answers it with ERRNO.

Ends as the program ended: with its status, or by the signal that ended it. Status 125 says that nothing was run.
"""

import ctypes
import errno
import json
import os
import platform
import signal
import sys

TRACEME, POKEUSER, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 6, 24, 0x4200, 0x420E
# TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC, EXITKILL
OPTIONS = 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x100000
WAIT_ALL = 0x40000000
SYSCALL_STOP = signal.SIGTRAP | 0x80
AT_FDCWD, AT_REMOVEDIR = -100, 0x200

# The arguments of each call: a path, a directory and a path, a file descriptor, or a number.
SHAPES = {
    "open": "path flags", "openat": "at flags", "creat": "path",
    "write": "fd data size", "pwrite64": "fd data size offset", "writev": "fd vector count",
    "fsync": "fd", "fdatasync": "fd", "ftruncate": "fd",
    "link": "path path", "linkat": "at at", "rename": "path path", "renameat": "at at", "renameat2": "at at",
    "unlink": "path", "unlinkat": "at", "rmdir": "path", "mkdir": "path", "mkdirat": "at",
}
NUMBERS = {
    "x86_64": {
        1: "write", 2: "open", 18: "pwrite64", 20: "writev", 74: "fsync", 75: "fdatasync", 77: "ftruncate",
        82: "rename", 83: "mkdir", 84: "rmdir", 85: "creat", 86: "link", 87: "unlink", 257: "openat", 258: "mkdirat",
        263: "unlinkat", 264: "renameat", 265: "linkat", 316: "renameat2",
    },
    "aarch64": {
        34: "mkdirat", 35: "unlinkat", 37: "linkat", 38: "renameat", 46: "ftruncate", 56: "openat", 64: "write",
        66: "writev", 68: "pwrite64", 82: "fsync", 83: "fdatasync", 276: "renameat2",
    },
}
MEANINGS = {
    "creat": "create", "pwrite64": "write", "writev": "write", "fsync": "sync", "fdatasync": "sync",
    "ftruncate": "truncate", "linkat": "link", "renameat": "rename", "renameat2": "rename", "unlink": "remove",
    "unlinkat": "remove", "rmdir": "remove", "mkdirat": "mkdir",
}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class SyscallInfo(ctypes.Structure):
    """The kernel's ptrace_syscall_info, of which an exit has its answer where an entry has the number."""

    _fields_ = [
        ("op", ctypes.c_uint8), ("pad", ctypes.c_uint8 * 3), ("arch", ctypes.c_uint32), ("ip", ctypes.c_uint64),
        ("sp", ctypes.c_uint64), ("number_or_answer", ctypes.c_int64), ("arguments", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64 * 2),
    ]


class NotRun(Exception):
    """Why the program cannot be watched."""


def ptrace(request, thread, address=0, data=0):
    answer = libc.ptrace(request, thread, address, data)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def signed(number):
    return ctypes.c_int32(number & 0xFFFFFFFF).value


class Thread:
    """A thread of the program: its memory and files, and the call that it is in."""

    def __init__(self, number):
        self.number = number
        self.call = None
        self.failing = False

    def bytes_at(self, address, size):
        with open(f"/proc/{self.number}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)

    def text_at(self, address):
        text = b""
        while b"\0" not in text:
            # Up to the page's end: what is behind it may not be there.
            text += self.bytes_at(address + len(text), 4096 - (address + len(text)) % 4096)
        return os.fsdecode(text[: text.index(b"\0")])

    def file(self, descriptor):
        name = "cwd" if descriptor == AT_FDCWD else f"fd/{descriptor}"
        return os.readlink(f"/proc/{self.number}/{name}")

    def position(self, descriptor):
        with open(f"/proc/{self.number}/fdinfo/{descriptor}", encoding="ascii") as info:
            return int(info.readline().split()[1])

    def begun(self, name, arguments):
        """The call that begins with these arguments, or none where it changes no file."""
        arguments, values, paths = iter(arguments), {}, []
        for shape in SHAPES[name].split():
            argument = next(arguments)
            if shape == "path":
                paths.append(os.path.join(self.file(AT_FDCWD), self.text_at(argument)))
            elif shape == "at":
                folder, path = self.file(signed(argument)), self.text_at(next(arguments))
                paths.append(os.path.join(folder, path))
            else:
                values[shape] = argument
        if "flags" in values:
            flags = values["flags"]
            if not flags & (os.O_CREAT | os.O_TRUNC):
                return None
            name = "create" if flags & os.O_CREAT else "truncate"
        call = {"call": MEANINGS.get(name, name)}
        if "fd" in values:
            descriptor = signed(values["fd"])
            paths.append(self.file(descriptor))
            call["to_stdout"] = descriptor == 1
            if call["call"] == "write":
                call["at"] = values["offset"] if "offset" in values else self.position(descriptor)
                call["bytes"] = self.written(values)
        call["paths"] = [os.path.normpath(path) for path in paths]
        return call

    def written(self, values):
        if "data" in values:
            return self.bytes_at(values["data"], values["size"])
        pieces = self.bytes_at(values["vector"], 16 * values["count"])
        words = memoryview(pieces).cast("N")
        return b"".join(self.bytes_at(words[i], words[i + 1]) for i in range(0, len(words), 2))


class Watch:
    """Follows the program, and does at one call what was asked."""

    def __init__(self, folder, log, kill, fail):
        self.folder, self.log, self.kill, self.fail = os.path.realpath(folder) + "/", log, kill, fail
        self.names = NUMBERS[platform.machine()]
        self.threads = {}
        # The thread that is in a call on the folder, and those that wait for theirs, each with what it asks for.
        self.busy = None
        self.waiting = []
        self.count = 0

    def run(self, program):
        child = os.fork()
        if child == 0:
            try:
                ptrace(TRACEME, 0)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.execvp(program[0], program)
            finally:
                os._exit(125)
        self.child = child
        os.waitpid(child, WAIT_ALL)
        try:
            ptrace(SETOPTIONS, child, 0, OPTIONS)
        except OSError as error:
            os.kill(child, signal.SIGKILL)
            raise NotRun(f"this machine does not let a process be traced (ptrace): {error}") from error
        self.threads[child] = Thread(child)
        self.go_on(child, 0)
        ended = None
        while True:
            try:
                number, status = os.waitpid(-1, WAIT_ALL)
            except ChildProcessError:
                return ended
            if os.WIFSTOPPED(status):
                self.stopped(number, status)
            elif number == child:
                ended = os.waitstatus_to_exitcode(status)

    def go_on(self, thread, with_signal):
        try:
            ptrace(SYSCALL, thread, 0, with_signal)
        except ProcessLookupError:
            pass  # killed meanwhile; waiting tells of it

    def stopped(self, number, status):
        stop = os.WSTOPSIG(status)
        is_new = number not in self.threads
        thread = self.threads.setdefault(number, Thread(number))
        if stop == SYSCALL_STOP:
            self.at_call(thread)
            return
        if status >> 16 or (is_new and stop == signal.SIGSTOP):
            stop = 0
        self.go_on(number, stop)

    def at_call(self, thread):
        info = SyscallInfo()
        try:
            ptrace(GET_SYSCALL_INFO, thread.number, ctypes.sizeof(info), ctypes.addressof(info))
        except ProcessLookupError:
            return  # killed meanwhile
        if info.op == 1 and info.number_or_answer in self.names:
            self.waiting.append((thread, self.names[info.number_or_answer], list(info.arguments)))
        else:
            if info.op == 2 and thread is self.busy:
                self.busy = None
                self.ends(thread, thread.call, info.number_or_answer)
            self.go_on(thread.number, 0)
        while self.waiting and not self.busy:
            thread, name, arguments = self.waiting.pop(0)
            try:
                thread.call = None
                self.begins(thread, name, arguments)
            except (ProcessLookupError, FileNotFoundError):
                pass  # killed meanwhile
            if thread.call:
                self.busy = thread
            self.go_on(thread.number, 0)

    def begins(self, thread, name, arguments):
        try:
            call = thread.begun(name, arguments)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EIO, errno.EFAULT):
                return  # a descriptor or an address that is none: the call fails
            raise
        if call is None:
            return
        if all((path + "/").startswith(self.folder) for path in call["paths"]):
            self.count += 1
            call["number"] = self.count
            if self.kill == ("before", self.count):
                self.end_it()
                return
        elif call["call"] == "write" and call["to_stdout"]:
            call = {"call": "answer", "paths": [], "number": None}
        else:
            return
        thread.call = call
        if call["paths"] and self.fail and self.fail[:2] == (call["call"], os.path.basename(call["paths"][0])):
            if platform.machine() != "x86_64":
                raise NotRun("a call can be made to fail on x86_64 only")
            ptrace(POKEUSER, thread.number, 15 * 8, ctypes.c_void_p(-1).value)
            thread.failing = True

    def ends(self, thread, call, answer):
        if thread.failing:
            thread.failing = False
            answer = -self.fail[2]
            ptrace(POKEUSER, thread.number, 10 * 8, ctypes.c_void_p(answer).value)
        line = {"call": call["call"], "ok": answer >= 0}
        relative = [os.path.relpath(path, self.folder) for path in call["paths"]]
        line.update(zip(("path", "to"), relative))
        if "bytes" in call:
            line["at"] = call["at"]
            line["bytes"] = call["bytes"][: max(answer, 0)].decode("latin-1")
        self.log.write(json.dumps(line) + "\n")
        if self.kill == ("after", call["number"]):
            self.end_it()

    def end_it(self):
        self.log.flush()
        os.kill(self.child, signal.SIGKILL)


def main(arguments):
    split = arguments.index("--")
    (folder, log, *rest), program = arguments[:split], arguments[split + 1 :]
    kill = fail = None
    if rest[:1] == ["--kill"]:
        kill = (rest[1], int(rest[2]))
    elif rest[:1] == ["--fail"]:
        fail = (rest[1], rest[2], getattr(errno, rest[3]))
    if platform.system() != "Linux" or platform.machine() not in NUMBERS:
        raise NotRun(f"calls are watched on Linux ({' and '.join(NUMBERS)}) only")
    with open(log, "w", encoding="utf-8") as lines:
        ended = Watch(folder, lines, kill, fail).run(program)
    if ended is not None and ended < 0:
        os.kill(os.getpid(), -ended)
    sys.exit(125 if ended is None else ended)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NotRun as reason:
        print(f"disk_calls.py: {reason}", file=sys.stderr)
        sys.exit(125)
