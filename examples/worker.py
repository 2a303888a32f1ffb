"""A worker of Capstan in Python: node code outside the host, with nothing but the standard library.

    CAPSTAN_URL=http://127.0.0.1:3210 CAPSTAN_KEY=hk_live_... python3 worker.py

The key needs the scope `workers:serve` and nothing else. Write your own nodes like `word_count` below.
"""

import json
import os
import threading
import urllib.error
import urllib.request

URL = os.environ["CAPSTAN_URL"].rstrip("/") + "/v1/host/capstan/workers"
KEY = os.environ["CAPSTAN_KEY"]
LEASE_SECONDS = int(os.environ.get("CAPSTAN_LEASE_SECONDS", "30"))


class LeaseOver(Exception):
    """The task is another worker's now, or nobody wants its result: drop it."""


class Failure(Exception):
    """The attempt failed. With retryable=False the node is not tried again."""

    def __init__(self, code, message, retryable=True):
        super().__init__(message)
        self.error = {"code": code, "message": message, "retryable": retryable}


def send(method, path, body, timeout=60):
    data = json.dumps(body).encode()
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        if error.code in (404, 409):
            raise LeaseOver() from error
        raise


class Task:
    """One attempt at a node, while this worker has its lease."""

    def __init__(self, given):
        self.id, self.epoch = given["taskId"], given["epoch"]
        self.run_id, self.node_id, self.type_id = given["runId"], given["nodeId"], given["typeId"]
        self.config, self.inputs = given["config"], given["inputs"]
        # Sent with requests of your own, these make them part of the trace of the run; there are none without a trace.
        self.trace_headers = {name: given[name] for name in ("traceparent", "tracestate") if name in given}
        self.cancelled = threading.Event()
        self._ended = threading.Event()
        self._logs = []

    def effect(self, name, perform):
        """Does something outside, once: later attempts get the recorded result. Names differ within a node."""
        claim = {"epoch": self.epoch, "name": name}
        state = send("POST", f"/tasks/{self.id}/effects", claim)
        if state["state"] == "done":
            return state["result"]
        result = perform(state["idempotencyKey"])
        return send("PUT", f"/tasks/{self.id}/effects", {**claim, "result": result})["result"]

    def log(self, message, **fields):
        self._logs.append({"message": message, "fields": fields})

    def beat(self):
        while not self._ended.wait(LEASE_SECONDS / 3):
            try:
                if send("POST", f"/tasks/{self.id}:heartbeat", {"epoch": self.epoch})["isCancelled"]:
                    self.cancelled.set()
            except LeaseOver:
                self.cancelled.set()
            except OSError:
                pass  # The next heartbeat may arrive.

    def make(self, code):
        threading.Thread(target=self.beat, daemon=True).start()
        try:
            report = {"outputs": code(self)}
        except LeaseOver:
            return
        except Failure as failure:
            report = {"error": failure.error}
        except Exception as error:  # Whatever the code raises is a failed attempt.
            report = {"error": {"code": "node_failed", "message": str(error) or type(error).__name__}}
        finally:
            self._ended.set()
        verb = "complete" if "outputs" in report else "fail"
        try:
            send("POST", f"/tasks/{self.id}:{verb}", {"epoch": self.epoch, "logs": self._logs, **report})
        except (LeaseOver, OSError):
            pass  # Another worker has it, or will get it.


def word_count(task):
    """A node: gets config and inputs, returns outputs."""
    text = task.inputs.get("text", "")
    if not isinstance(text, str):
        raise Failure("validation_error", "text must be a string.", retryable=False)
    receipt = task.effect("receipt", lambda key: {"key": key, "process": os.getpid()})
    task.log("counted", characters=len(text))
    return {"words": len(text.split()), "receipt": receipt["key"]}


NODES = {
    "example.wordCount": {
        "code": word_count,
        "type": {
            "description": "Counts the words of a text.",
            "inputs": {"type": "object", "properties": {"text": {}}},
            "outputs": {"type": "object", "required": ["words"]},
        },
    },
}


def main():
    for type_id, node in NODES.items():
        send("PUT", f"/types/{type_id}", node["type"])
    print("serving " + ", ".join(NODES), flush=True)
    pause = threading.Event()
    while True:
        try:
            claim = {"types": list(NODES), "waitSeconds": 20, "leaseSeconds": LEASE_SECONDS, "worker": f"python-{os.getpid()}"}
            tasks = send("POST", "/tasks:claim", claim)["tasks"]
        except OSError:
            pause.wait(1)  # The host is restarting, or asks for patience.
            continue
        for given in tasks:
            Task(given).make(NODES[given["typeId"]]["code"])


if __name__ == "__main__":
    main()
