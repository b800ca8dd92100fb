"""Forward connections between ports on a command's own loopback and unix sockets of the host: its ways out.

The forwarder runs inside the sandbox, in the launcher's process. So the command can neither inspect nor kill it, it
does not count as a process that the command left behind, and it ends with the sandbox. The plan contains its code only
for commands that have a way out. Like the launcher it uses only small C modules.

It holds the sockets by descriptors that no other process has. The command sees no socket in its file system, so it can
neither connect to one directly, without a limit, nor replace it.

A side is read only after the other side has taken all earlier data. So a slow side slows down a fast one, and the
memory of a connection is bounded. Bytes are forwarded unchanged and are not inspected.
"""

import _socket
import select
import sys
from posix import set_inheritable

MOST = 200
"""The most simultaneous connections; further ones wait."""
AGAIN_S = 0.02
"""Delay before a retry of what the kernel sends no event for."""
_BACKLOG = 128
_PIECE = 65_536
_PIECES = 16
"""The most pieces forwarded for one connection before the others get a turn."""
_EVENTS = 64
_LAST_TURNS, _IDLE_TURNS = 10_000, 25
"""Limits for the data left at the end: turns in all, and turns in which nothing could be done."""


class Direction:
    """One direction of a connection."""

    def __init__(self, source: _socket.socket, sink: _socket.socket) -> None:
        self.source, self.sink = source, sink
        self.pending: bytes | memoryview = b""
        """Data read from the source that the sink has not taken yet."""
        self.ended = False
        """Whether the source has sent all its data."""
        self.over = False
        """Whether the sink was told of the end, or no longer reads."""

    def read(self) -> bool:
        """Read one piece from the source; return False if none is available."""
        try:
            self.pending = self.source.recv(_PIECE)
        except BlockingIOError:
            return False
        self.ended = not self.pending
        return True

    def write(self) -> bool:
        """Write pending data to the sink; return False if it takes no more now."""
        try:
            self.pending = memoryview(self.pending)[self.sink.send(self.pending) :]
        except BlockingIOError:
            return False
        return True

    def tell_end(self) -> None:
        """Signal the end of the data to the sink; the sink may still send."""
        self.over = True
        try:
            self.sink.shutdown(_socket.SHUT_WR)
        except OSError:  # the sink is closed already
            return


class ForwardedConnection:
    """A connection between a caller inside the sandbox and a server outside."""

    def __init__(self, caller: _socket.socket, server: _socket.socket) -> None:
        self.caller, self.server = caller, server
        self.up, self.down = Direction(caller, server), Direction(server, caller)
        self.interests: dict[_socket.socket, int] = {caller: 0, server: 0}
        """The epoll events registered for each side."""

    @property
    def is_over(self) -> bool:
        """Whether both directions are finished."""
        return self.up.ended and self.up.over and self.down.over

    def carry(self) -> None:
        """Forward in both directions as far as possible; raise OSError if the caller has gone."""
        self._carry_up()
        self._carry_down()

    def _carry_up(self) -> None:
        up = self.up
        for _ in range(_PIECES):
            if not up.pending and (up.ended or not up.read()):
                break
            if up.over:  # the server no longer reads, but the caller must be able to finish sending
                up.pending = b""
                continue
            try:
                if up.pending and not up.write():
                    break
            except OSError:
                up.over, up.pending = True, b""
        if up.ended and not up.pending and not up.over:
            up.tell_end()

    def _carry_down(self) -> None:
        down = self.down
        for _ in range(_PIECES):
            if not down.pending:
                try:
                    if down.ended or not down.read():
                        break
                except OSError:  # a server that closes with unread data causes an error after its last data
                    down.ended = True
            if down.pending and not down.write():
                break
        if down.ended and not down.pending and not down.over:
            down.tell_end()

    def wanted(self) -> dict[_socket.socket, int]:
        """Return the epoll events needed before more can be forwarded; 0 for a side that needs none."""
        up, down = self.up, self.down
        return {
            self.caller: _interest(reads=not (up.ended or up.pending), writes=bool(down.pending)),
            self.server: _interest(reads=not (down.ended or down.pending), writes=bool(up.pending)),
        }


def _interest(*, reads: bool, writes: bool) -> int:
    return (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if writes else 0)


class Forwarder:
    """Listens on the port of every way out from the start; works in turns, whenever its descriptor is readable."""

    def __init__(self, ways: dict[int, int]) -> None:
        """`ways` maps ports to descriptors of the sockets they lead to."""
        self._epoll = select.epoll()
        self._listeners: dict[int, tuple[_socket.socket, str]] = {}
        self._connections: dict[int, ForwardedConnection] = {}
        """By the descriptor of each side."""
        self._waiting: list[tuple[ForwardedConnection, str]] = []
        """Connections whose server has a full queue."""
        self._is_full = False
        for port, handle in ways.items():
            set_inheritable(handle, False)
            listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
            listener.bind(("127.0.0.1", port))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            self._listeners[listener.fileno()] = (listener, f"/proc/self/fd/{handle}")
            self._epoll.register(listener.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is work to do."""
        return self._epoll.fileno()

    @property
    def patience_s(self) -> float | None:
        """Seconds after which a turn is due even without an event, or None."""
        return AGAIN_S if self._waiting or self._is_full else None

    def turn(self, wait_s: float = 0.0) -> bool:
        """Do all work that is possible within `wait_s` seconds; return False if there was none."""
        waiting, self._waiting = self._waiting, []
        for connection, path in waiting:
            self._connect(connection, path)
        if self._is_full and self._count() < MOST:
            self._is_full = False
            for handle in self._listeners:
                self._epoll.register(handle, select.EPOLLIN)
        events = self._epoll.poll(wait_s, _EVENTS)
        for handle, _ in events:
            if handle in self._listeners:
                self._accept(*self._listeners[handle])
            elif handle in self._connections:
                self._carry(self._connections[handle])
        return bool(events)

    def finish(self) -> None:
        """Send what the callers, now dead, wrote last; give up after half a second without progress."""
        turns, idle = _LAST_TURNS, _IDLE_TURNS
        while turns and idle and (self._waiting or any(not one.up.over for one in self._connections.values())):
            turns -= 1
            idle -= not self.turn(AGAIN_S)

    def _count(self) -> int:
        return len(self._connections) // 2 + len(self._waiting)

    def _accept(self, listener: _socket.socket, path: str) -> None:
        while not self._is_full:
            server = None
            try:
                server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # first: an accepted caller needs one
                handle = listener._accept()[0]  # type: ignore[attr-defined]  # the stubs know only `socket.socket`
            except OSError as error:
                if server is not None:
                    server.close()
                if not isinstance(error, BlockingIOError | ConnectionError):  # out of descriptors: retry later
                    self._fill()
                return
            caller = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, handle)
            for side in (caller, server):
                side.setblocking(False)
            caller.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            self._connect(ForwardedConnection(caller, server), path)
            if self._count() >= MOST:
                self._fill()

    def _fill(self) -> None:
        """Stop accepting connections for now."""
        if not self._is_full:
            self._is_full = True
            for handle in self._listeners:
                self._epoll.unregister(handle)

    def _connect(self, connection: ForwardedConnection, path: str) -> None:
        """Connect a caller to its server; if nothing listens there, reset the caller instead of sending it nothing."""
        try:
            connection.server.connect(path)
        except BlockingIOError:  # the server's queue is full, and the kernel sends no event when it has room again
            self._waiting.append((connection, path))
        except OSError:
            _reset(connection.caller)
            connection.server.close()
        else:
            for side in (connection.caller, connection.server):
                self._connections[side.fileno()] = connection
            self._carry(connection)

    def _carry(self, connection: ForwardedConnection) -> None:
        try:
            connection.carry()
            if not connection.is_over:
                self._watch(connection)
                return
        except OSError:  # the caller has disconnected
            pass
        self._close(connection)

    def _watch(self, connection: ForwardedConnection) -> None:
        """Register for the events that allow more to be forwarded."""
        for side, wanted in connection.wanted().items():
            known = connection.interests[side]
            if wanted == known:
                continue
            # a side that needs no event is unregistered: its hang-up would be reported again and again
            if not wanted:
                self._epoll.unregister(side.fileno())
            elif known:
                self._epoll.modify(side.fileno(), wanted)
            else:
                self._epoll.register(side.fileno(), wanted)
            connection.interests[side] = wanted

    def _close(self, connection: ForwardedConnection) -> None:
        for side in (connection.caller, connection.server):
            self._connections.pop(side.fileno(), None)
            side.close()  # this also removes it from epoll


def _reset(caller: _socket.socket) -> None:
    """Close a connection with a reset, so that the caller sees an error."""
    try:
        caller.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, (1).to_bytes(4, sys.byteorder) + bytes(4))
    finally:
        caller.close()
