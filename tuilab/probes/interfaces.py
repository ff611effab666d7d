"""Find the network interface of an address of this machine."""

import psutil


def interface_of(address: str) -> str:
    """Return the interface with an address; empty if this machine has no such address.

    Every address 127.x.x.x is one of the loopback interface, although it lists only one of them.
    """
    for name, addresses in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in addresses):
            return str(name)
    if address.startswith("127."):
        return "lo"
    return ""


def network_of(address: str) -> dict[str, str]:
    """Return the environment of a rank that other ranks reach at an address.

    Without it, gloo uses the address of the machine's host name. Empty if no interface of this
    machine has the address.
    """
    name = interface_of(address)
    if not name:
        return {}
    return {"GLOO_SOCKET_IFNAME": name}
