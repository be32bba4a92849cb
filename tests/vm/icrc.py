#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""icrc.py CAPTURE: recomputes the invariant CRC of every RoCEv2 packet of a capture.

Says how many packets there are and which are wrong; fails if any is, or if there are none.

The ICRC is the Ethernet CRC-32 over eight bytes of ones and the packet from its IP header to the
end of the payload, with the fields that routers change set to ones: TOS, TTL and header checksum
(IPv4), traffic class, flow label and hop limit (IPv6), UDP checksum, and the BTH's eighth
reserved byte. It follows the payload, least significant byte first. (InfiniBand Architecture
Specification, annex A17.)
"""

import struct
import sys
import zlib

ROCE_PORT = 4791
IPV4, IPV6, UDP = 0x0800, 0x86DD, 17


def frames(capture):
    """The Ethernet frames of a pcap file of microseconds or nanoseconds."""
    head = capture[:24]
    for order in "<>":
        magic, _, _, _, _, _, link = struct.unpack(order + "IHHiIII", head)
        if magic in (0xA1B2C3D4, 0xA1B23C4D):
            break
    else:
        raise ValueError("no pcap file")
    if link != 1:
        raise ValueError(f"link type {link} is not Ethernet")
    at = 24
    while at < len(capture):
        _, _, kept, length = struct.unpack_from(order + "IIII", capture, at)
        at += 16
        if kept != length or at + kept > len(capture):
            raise ValueError("a frame is not whole")
        yield capture[at : at + kept]
        at += kept


def roce_packet(frame):
    """(IP header and all that follows, as long as it says; length of that header), or None."""
    if len(frame) < 14 + 20:
        return None
    (kind,) = struct.unpack_from(">H", frame, 12)
    packet = frame[14:]
    if kind == IPV4:
        head, protocol = (packet[0] & 15) * 4, packet[9]
        (total,) = struct.unpack_from(">H", packet, 2)
    elif kind == IPV6 and len(packet) >= 40:
        head, protocol = 40, packet[6]
        total = 40 + struct.unpack_from(">H", packet, 4)[0]
    else:
        return None
    if protocol != UDP or len(packet) < total or total < head + 8:
        return None
    if struct.unpack_from(">H", packet, head + 2)[0] != ROCE_PORT:
        return None
    # UDP, BTH and ICRC are the least.
    if total < head + 8 + 12 + 4:
        raise ValueError("a RoCE packet is shorter than its headers")
    return packet[:total], head


def icrc(packet, head):
    masked = bytearray(packet[:-4])
    if head == 40 and packet[0] >> 4 == 6:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    else:
        masked[1] = 0xFF
        masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    masked[head + 6 : head + 8] = b"\xff\xff"
    masked[head + 8 + 4] = 0xFF
    return zlib.crc32(b"\xff" * 8 + masked).to_bytes(4, "little")


def main():
    with open(sys.argv[1], "rb") as file:
        capture = file.read()
    good = bad = 0
    for number, frame in enumerate(frames(capture), 1):
        found = roce_packet(frame)
        if found is None:
            continue
        packet, head = found
        if icrc(packet, head) == packet[-4:]:
            good += 1
        else:
            bad += 1
            print(f"frame {number}: ICRC {packet[-4:].hex()}, not {icrc(packet, head).hex()}")
    print(f"{good + bad} RoCE packets, {bad} with a wrong ICRC")
    return 0 if good and not bad else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, struct.error) as error:
        sys.exit(f"icrc.py: {sys.argv[1:]}: {error}")
