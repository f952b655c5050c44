"""Lets jupyter_client run cells in a kernel: judge.py CONNECTION_FILE, cells as JSON
on stdin; prints as JSON what came of each."""
import json
import sys

from jupyter_client import BlockingKernelClient

client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=60)
results = []
for code in json.load(sys.stdin):
    outputs = []

    def output_hook(message):
        content = message["content"]
        outputs.append([message["msg_type"], content.get("text") or content.get("ename") or content.get("data", {}).get("text/plain")])

    def stdin_hook(message):
        client.input("answer to " + message["content"]["prompt"])

    reply = client.execute_interactive(code, output_hook=output_hook, stdin_hook=stdin_hook, allow_stdin=True, timeout=60)
    results.append({"status": reply["content"]["status"], "count": reply["content"]["execution_count"], "outputs": outputs})
reply = client.complete("pr", reply=True, timeout=60)
results.append({"status": reply["content"]["matches"][0], "count": 0, "outputs": []})
assert client.hb_channel.is_beating()
reply = client.shutdown(reply=True, timeout=60)
results.append({"status": reply["content"]["status"], "count": 0, "outputs": []})
client.stop_channels()
json.dump(results, sys.stdout)
