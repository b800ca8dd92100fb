"""Carries bytes between ports of a command's own loopback and unix sockets of the machine: the ways out.

It works inside, in the launcher's own process: so the command can neither look into it nor end it, it is nobody's
survivor, and it ends with the sandbox. Its code travels in the plan of the commands that have a way; like the launcher
it stands alone, on the small modules written in C.

It holds the sockets by handles that nobody else has: the command sees no socket that it could call by itself, without
end, or put something else in the place of.

Nothing is read before the other side has taken what came earlier, so whoever is slow slows down whoever is quick, and
what a connection costs in memory is bounded. Bytes go on as they come; nothing looks at them.
"""

import _socket
import select
import sys
from posix import set_inheritable

MOST = 200
"""So many connections at once; the next ones wait."""
AGAIN_S = 0.02
"""After so long what could not be done is tried again, where nobody will say that it can be done now."""
_BACKLOG = 128
_PIECE = 65_536
_PIECES = 16
"""So much of one connection is carried before it is the turn of the others."""
_EVENTS = 64
_LAST_TURNS, _IDLE_TURNS = 10_000, 25
"""So many there are for last words, and so many of them in which nothing can be done."""


class Direction:
    """One direction of a connection."""

    def __init__(self, source: _socket.socket, sink: _socket.socket) -> None:
        self.source, self.sink = source, sink
        self.pending: bytes | memoryview = b""
        """What the source has said and the sink has not taken."""
        self.ended = False
        """Whether the source has said its last."""
        self.over = False
        """Whether the sink was told so, or listens no more."""

    def read(self) -> bool:
        """Takes one piece from the source; false if there is none now."""
        try:
            self.pending = self.source.recv(_PIECE)
        except BlockingIOError:
            return False
        self.ended = not self.pending
        return True

    def write(self) -> bool:
        """Gives the sink what is pending; false if it takes no more now."""
        try:
            self.pending = memoryview(self.pending)[self.sink.send(self.pending) :]
        except BlockingIOError:
            return False
        return True

    def tell_end(self) -> None:
        """The sink hears nothing more; it may go on talking."""
        self.over = True
        try:
            self.sink.shutdown(_socket.SHUT_WR)
        except OSError:  # it has gone already
            return


class ForwardedConnection:
    """A caller inside and whoever answers outside."""

    def __init__(self, caller: _socket.socket, server: _socket.socket) -> None:
        self.caller, self.server = caller, server
        self.up, self.down = Direction(caller, server), Direction(server, caller)
        self.interests: dict[_socket.socket, int] = {caller: 0, server: 0}
        """What the kernel was asked to tell of each."""

    @property
    def is_over(self) -> bool:
        """Whether both have said their last."""
        return self.up.ended and self.up.over and self.down.over

    def carry(self) -> None:
        """Carries on in both directions as far as both sides are able; OSError if the caller is gone."""
        self._carry_up()
        self._carry_down()

    def _carry_up(self) -> None:
        up = self.up
        for _ in range(_PIECES):
            if not up.pending and (up.ended or not up.read()):
                break
            if up.over:  # the server listens no more, but the caller must be able to finish
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
                except OSError:  # a server that closes with something unread says so, after all that it had to say
                    down.ended = True
            if down.pending and not down.write():
                break
        if down.ended and not down.pending and not down.over:
            down.tell_end()

    def wanted(self) -> dict[_socket.socket, int]:
        """What has to happen before anything more can be carried; 0 where nothing need be told."""
        up, down = self.up, self.down
        return {
            self.caller: _interest(reads=not (up.ended or up.pending), writes=bool(down.pending)),
            self.server: _interest(reads=not (down.ended or down.pending), writes=bool(up.pending)),
        }


def _interest(*, reads: bool, writes: bool) -> int:
    return (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if writes else 0)


class Forwarder:
    """Listens at every way's port from the start; does its work in turns, whenever its handle can be read from."""

    def __init__(self, ways: dict[int, int]) -> None:
        """`ways` are ports, and handles of the sockets they lead to."""
        self._epoll = select.epoll()
        self._listeners: dict[int, tuple[_socket.socket, str]] = {}
        self._connections: dict[int, ForwardedConnection] = {}
        """By the handle of each side."""
        self._waiting: list[tuple[ForwardedConnection, str]] = []
        """Callers whose server has no room for them yet."""
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
        """Can be read from when there is something to do."""
        return self._epoll.fileno()

    @property
    def patience_s(self) -> float | None:
        """After how long a turn is due in any case."""
        return AGAIN_S if self._waiting or self._is_full else None

    def turn(self, wait_s: float = 0.0) -> bool:
        """Does what can be done now, or in a moment; false if that was nothing."""
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
        """The callers are dead: what they said last still goes out, if somebody takes it within half a second."""
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
                server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # first, so that who is let in can go on
                handle = listener._accept()[0]  # type: ignore[attr-defined]  # the stubs know only the module above
            except OSError as error:
                if server is not None:
                    server.close()
                if not isinstance(error, BlockingIOError | ConnectionError):  # no handle is free: later
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
        """Nobody is let in for now."""
        if not self._is_full:
            self._is_full = True
            for handle in self._listeners:
                self._epoll.unregister(handle)

    def _connect(self, connection: ForwardedConnection, path: str) -> None:
        """Takes a caller to its server; that nobody is there it hears by a reset, never by an empty answer."""
        try:
            connection.server.connect(path)
        except BlockingIOError:  # its queue is full, and the kernel tells nobody when it no longer is
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
        except OSError:  # the caller has gone without a word
            pass
        self._close(connection)

    def _watch(self, connection: ForwardedConnection) -> None:
        """Asks the kernel to tell when there is more to carry."""
        for side, wanted in connection.wanted().items():
            known = connection.interests[side]
            if wanted == known:
                continue
            # a side of which nothing is wanted is not even asked for, or its end would be told again and again
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
            side.close()  # which also takes it off the kernel's list


def _reset(caller: _socket.socket) -> None:
    """Hangs up so that it is noticed."""
    try:
        caller.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, (1).to_bytes(4, sys.byteorder) + bytes(4))
    finally:
        caller.close()
