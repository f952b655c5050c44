"""A host of jupyter_client's: the blocking client on a kernel that it starts.

kernel.py TRANSPORT, then commands on stdin, a JSON object a line, each answered
by one line:
  {"do": "cells", "n": N}                     N times `pass`        -> {"ms": [...]}
  {"do": "run", "code": CODE, "stall": S}     one cell, read after S seconds
                                              -> {"ms", "displays", "bytes"}
"""
import json
import queue
import sys
import time

from jupyter_client.manager import KernelManager


def finish(client, msg_id, give_up=120):
    """Takes messages until reply and idle; counts displays and bytes of stdout."""
    displays = size = 0
    end = time.monotonic() + give_up
    try:
        while client.get_shell_msg(timeout=end - time.monotonic())["parent_header"].get("msg_id") != msg_id:
            pass
        while True:
            m = client.get_iopub_msg(timeout=end - time.monotonic())
            if m["parent_header"].get("msg_id") != msg_id:
                continue
            kind, content = m["msg_type"], m["content"]
            if kind == "display_data":
                displays += 1
            elif kind == "stream":
                size += len(content["text"])
            elif kind == "status" and content["execution_state"] == "idle":
                break
    except queue.Empty:
        pass  # the idle was lost with the rest
    return displays, size


def main():
    manager = KernelManager(transport=sys.argv[1])
    # The interpreter that this runs on, whatever kernelspecs there are.
    manager.kernel_spec.argv[:1] = [sys.executable]
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    print("{}", flush=True)
    for line in sys.stdin:
        todo = json.loads(line)
        if todo["do"] == "cells":
            ms = []
            for _ in range(todo["n"]):
                begin = time.perf_counter()
                finish(client, client.execute("pass"))
                ms.append((time.perf_counter() - begin) * 1e3)
            out = {"ms": ms}
        else:
            begin = time.perf_counter()
            msg_id = client.execute(todo["code"])
            time.sleep(todo["stall"])
            displays, size = finish(client, msg_id, 20 if todo["stall"] else 600)
            out = {"ms": (time.perf_counter() - begin) * 1e3, "displays": displays, "bytes": size}
        print(json.dumps(out), flush=True)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


main()
