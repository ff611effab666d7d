"""The network interfaces of this box."""

import psutil


def interface_of(address: str) -> str:
    """Return the interface that has an address of this box; of the many of the loopback it has one. Nothing if none has."""
    for name, known in psutil.net_if_addrs().items():
        if any(one.address == address for one in known):
            return str(name)
    return "lo" if address.startswith("127.") else ""


def network_of(address: str) -> dict[str, str]:
    """Return the environment of a rank that the others reach at an address: gloo goes by the name of the box otherwise."""
    name = interface_of(address)
    return {"GLOO_SOCKET_IFNAME": name} if name else {}
