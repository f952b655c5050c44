"""A peer that is real libzmq, for the tests.

peer.py echo KIND ADDRESS [HEARTBEAT_MS]   a ROUTER or a REP that gives each message back
peer.py pub ADDRESS COUNT SIZE             an XPUB: waits for "a", publishes, waits for its end
peer.py client ADDRESS ROUNDS              a DEALER: prints nanoseconds a round trip
"""
import sys
import time

import zmq

context = zmq.Context()
what, args = sys.argv[1], sys.argv[2:]

if what == "echo":
    s = context.socket(getattr(zmq, args[0]))
    s.set(zmq.SNDHWM, 0)  # a ROUTER drops what is over it
    if len(args) > 2:
        s.set(zmq.HEARTBEAT_IVL, int(args[2]))
        s.set(zmq.HEARTBEAT_TIMEOUT, 10 * int(args[2]))
    s.bind(args[1])
    print(s.get_string(zmq.LAST_ENDPOINT), flush=True)
    if args[0] == "ROUTER":
        zmq.proxy(s, s)  # all of it in libzmq
    while True:
        s.send_multipart(s.recv_multipart())
elif what == "pub":
    s = context.socket(zmq.XPUB)
    s.set(zmq.SNDHWM, 0)
    s.bind(args[0])
    print(s.get_string(zmq.LAST_ENDPOINT), flush=True)
    assert s.recv() == b"\x01a"
    for i in range(int(args[1])):
        s.send_multipart([b"b", b"not asked for"])
        s.send_multipart([b"a%d" % i, b"x" * int(args[2])])
    assert s.recv() == b"\x00a"
    print("gone", flush=True)
elif what == "client":
    s = context.socket(zmq.DEALER)
    s.connect(args[0])
    message = [b"", b"x" * 100]
    rounds = int(args[1])
    for _ in range(rounds // 10 + 1):
        s.send_multipart(message)
        s.recv_multipart()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        s.send_multipart(message)
        s.recv_multipart()
    print((time.perf_counter_ns() - begin) / rounds, flush=True)
