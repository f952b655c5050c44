"""libzmq's ends of an echo.

echo.py serve ADDRESS    a ROUTER that sends back what comes, until it is ended
echo.py client ADDRESS   a DEALER; for each number N on stdin N round trips,
                         answered by their microseconds as a JSON list
"""
import json
import sys
import time

import zmq


def main():
    what, address = sys.argv[1:]
    context = zmq.Context()
    if what == "serve":
        s = context.socket(zmq.ROUTER)
        s.bind(address)
        print("{}", flush=True)
        while True:
            s.send_multipart(s.recv_multipart(copy=False), copy=False)
    s = context.socket(zmq.DEALER)
    s.connect(address)
    print("{}", flush=True)
    message = [b"", bytes(100)]
    for line in sys.stdin:
        us = []
        for _ in range(int(line)):
            begin = time.perf_counter_ns()
            s.send_multipart(message)
            s.recv_multipart()
            us.append((time.perf_counter_ns() - begin) / 1e3)
        print(json.dumps(us), flush=True)
    context.destroy(linger=0)


main()
