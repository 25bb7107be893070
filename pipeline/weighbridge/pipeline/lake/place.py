"""Where a lake lies: a local folder or an object-store address, its marker, its folders and its writer's lock."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import fs

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.lease import FOLDER, Lease
from weighbridge.schemas.enumerations import Domain
from weighbridge.schemas.errors import ContractError, LakeBusyError, LakeError
from weighbridge.schemas.version import SCHEMA_VERSION, check_version

MARKER = "lake.json"
FORMAT = "weighbridge lake"
_LOCK = ".lock"


@dataclass(slots=True)
class Place:
    """The root of a lake.

    Attributes:
        root: a local path, or an address such as `s3://bucket/lake`; nothing is touched when it is named.
    """

    root: str
    _turn: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _held: int = 0
    _lease: Lease | None = None

    @property
    def local(self) -> Path | None:
        """The folder, where the lake lies in one."""
        return None if "://" in self.root else Path(self.root)

    def at(self, *parts: str) -> str:
        """The address of something inside the lake."""
        return "/".join([self.root.rstrip("/"), *parts])

    def make(self) -> None:
        """Make the domain folders and the marker. What is there already stays as it is."""
        with told("making the lake", self.root):
            if self.local is not None:
                for folder in (self.local, *(self.local / domain for domain in Domain)):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._marker() is None:
                self._mark()

    def check(self) -> None:
        """See that this is a lake that this installation can read.

        Raises:
            LakeError: it is no lake, or one of a later schema version.
        """
        with told("opening the lake", self.root):
            marker = self._marker()
        if marker is None:
            raise LakeError(
                f"{self.root} is no lake: it has no {MARKER}. Run `weighbridge init` to make one there, "
                "or name the folder of an existing one."
            )
        try:
            content = json.loads(marker)
            if content["format"] != FORMAT:
                raise ValueError(content["format"])
        except (ValueError, KeyError, TypeError):
            raise LakeError(
                f"{self.at(MARKER)} is not the marker of a lake; restore the file, or name another folder"
            ) from None
        try:
            check_version(content.get("schema_version"), self.at(MARKER))
        except ContractError as error:
            raise LakeError(str(error)) from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer, for as long as the block runs; the same thread may enter again.

        In a folder the lock belongs to the process and falls with it, however it ends. In an object store it is a
        lease that all hosts see (`lease`): of a process that was killed it ends by itself after some minutes.

        Raises:
            LakeBusyError: another process or thread is writing.
            LakeError: the lake cannot be written.
        """
        if not self._turn.acquire(blocking=False):
            raise LakeBusyError(f"{self.root} is being written by another thread; {_WAIT}")
        try:
            if self._held:
                self._held += 1
                if self._lease is not None:
                    self._lease.check()
                yield
            else:
                with self._exclusively() if self.local is not None else self._leased():
                    self._held = 1
                    yield
        finally:
            self._held = max(0, self._held - 1)
            self._turn.release()

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        self.check()
        with told("taking the writer's lock", self.root):
            handle = os.open(self._lock_file(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
                raise LakeBusyError(f"{self.root} is being written by process {holder}; {_WAIT}") from None
            with told("taking the writer's lock", self.root):
                os.ftruncate(handle, 0)
                os.pwrite(handle, str(os.getpid()).encode(), 0)
                self._raise_version()
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _leased(self) -> Iterator[None]:
        self.check()
        lease = Lease(self.at(FOLDER))
        with lease.held():
            self._lease = lease
            try:
                with told("taking the writer's lock", self.root):
                    self._raise_version()
                yield
            finally:
                self._lease = None

    def _lock_file(self) -> Path:
        assert self.local is not None
        return self.local / _LOCK

    def _raise_version(self) -> None:
        marker = self._marker()
        if marker is not None and json.loads(marker).get("schema_version") != SCHEMA_VERSION:
            self._mark()

    def store_of(self, address: str) -> tuple[fs.FileSystem, str]:
        """The file system of an address inside the lake, and the path in it."""
        if self.local is not None:
            return fs.LocalFileSystem(), address
        store, path = fs.FileSystem.from_uri(address)
        return store, path.rstrip("/")

    def _marker(self) -> bytes | None:
        store, path = self.store_of(self.root)
        try:
            with store.open_input_stream(f"{path}/{MARKER}") as file:
                return bytes(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _mark(self) -> None:
        content = json.dumps({"format": FORMAT, "schema_version": SCHEMA_VERSION}) + "\n"
        if self.local is not None:
            temporary = self.local / f".{MARKER}.{os.getpid()}"
            temporary.write_text(content, encoding="utf-8")
            temporary.replace(self.local / MARKER)
            return
        store, path = self.store_of(self.root)
        store.create_dir(path, recursive=True)
        with store.open_output_stream(f"{path}/{MARKER}") as file:
            file.write(content.encode())


_WAIT = "nothing was changed. Wait until it has ended, then run the same command again."
