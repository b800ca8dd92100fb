"""Attempts to reach the network, or anybody who listens on this machine."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sandbox.escapes.attacks.calls import Attack, Orders, attempt, hold, run

_MPTCP, _SCTP = 262, 132
_FASTOPEN = 0x20000000
_OUTWARD = (("198.51.100.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses kept for documentation; connecting a datagram socket asks for the route and sends nothing."""
_ODD = {"VSOCK": 40, "ALG": 38, "RDS": 21, "TIPC": 30, "BLUETOOTH": 31, "XDP": 44, "CAN": 29, "KEY": 15, "QIPCRTR": 42}
_TIMEOUT_S = 1.0
_LISTEN_S = 3.0

Address = tuple[str, int] | str


def _send(orders: Orders, family: int, kind: int, address: Address, protocol: int = 0, *, connect: bool = True) -> None:
    with socket.socket(family, kind, protocol) as talking:
        talking.settimeout(_TIMEOUT_S)
        if connect:
            talking.connect(address)
            talking.send(orders.scene.encode())
        else:
            flags = _FASTOPEN if kind == socket.SOCK_STREAM and family != socket.AF_UNIX else 0
            talking.sendto(orders.scene.encode(), flags, address)


def connect_tcp(orders: Orders) -> None:
    here = ("127.0.0.1", orders.tcp)
    attempt("TCP", partial(_send, orders, socket.AF_INET, socket.SOCK_STREAM, here))
    attempt("TCP over IPv6", partial(_send, orders, socket.AF_INET6, socket.SOCK_STREAM, ("::1", orders.tcp)))
    attempt("multipath TCP", partial(_send, orders, socket.AF_INET, socket.SOCK_STREAM, here, _MPTCP))
    attempt("SCTP", partial(_send, orders, socket.AF_INET, socket.SOCK_STREAM, here, _SCTP))
    attempt("fast open", partial(_send, orders, socket.AF_INET, socket.SOCK_STREAM, here, connect=False))


def send_udp(orders: Orders) -> None:
    here = ("127.0.0.1", orders.udp)
    attempt("UDP", partial(_send, orders, socket.AF_INET, socket.SOCK_DGRAM, here))
    attempt("UDP unconnected", partial(_send, orders, socket.AF_INET, socket.SOCK_DGRAM, here, connect=False))


def connect_abstract(orders: Orders) -> None:
    attempt("abstract socket", partial(_send, orders, socket.AF_UNIX, socket.SOCK_STREAM, f"\0{orders.abstract}"))


def connect_socket_file(orders: Orders) -> None:
    kinds = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}
    for name, kind in kinds.items():
        path = f"{orders.socket}.{name}"
        attempt(f"connect to {path}", partial(_send, orders, socket.AF_UNIX, kind, path))
        attempt(f"send to {path}", partial(_send, orders, socket.AF_UNIX, kind, path, connect=False))


def route_outside(orders: Orders) -> None:
    talking = []

    def connect(address: str, family: int) -> None:
        talking.append(socket.socket(family, socket.SOCK_DGRAM))
        talking[-1].connect((address, 9))

    for address, family in _OUTWARD:
        attempt(f"route to {address}", partial(connect, address, family))
    hold(orders)


def listen_on_loopback(orders: Orders) -> None:
    listening: list[socket.socket] = []

    def listen() -> None:
        listening.append(socket.create_server(("127.0.0.1", orders.free_port)))
        listening[-1].settimeout(_LISTEN_S)

    attempt("listen", listen)
    with suppress(OSError, IndexError):
        caller, _ = listening[0].accept()
        caller.sendall(orders.scene.encode())
        caller.close()


def create_odd_sockets(orders: Orders) -> None:
    kept: list[socket.socket] = []

    def create(family: int, kind: int) -> None:
        kept.append(socket.socket(family, kind))

    for name, family in _ODD.items():
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
            attempt(f"{name} of kind {int(kind)}", partial(create, family, kind))
    hold(orders)


def create_raw_sockets(orders: Orders) -> None:
    kept: list[socket.socket] = []
    ways: dict[str, Callable[[], socket.socket]] = {
        "packet": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300),
        "packet datagram": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0300),
        "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
        "raw over IPv6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW),
    }
    for name, way in ways.items():
        made = attempt(name, way)
        if isinstance(made, socket.socket):
            kept.append(made)
    hold(orders)
    os._exit(0)


ATTACKS: dict[str, Attack] = {
    "N01": connect_tcp,
    "N02": send_udp,
    "N03": connect_abstract,
    "N04": connect_socket_file,
    "N05": route_outside,
    "N06": listen_on_loopback,
    "N07": create_odd_sockets,
    "N08": create_raw_sockets,
}

if __name__ == "__main__":
    run(ATTACKS)
