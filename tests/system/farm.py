"""What the system tests share: a scratch folder with a cache of its own, running the program, reading its files. Not a test."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["LAYERFARM_BIN"])
MODELS = pathlib.Path(__file__).resolve().parent.parent / "data" / "models"
LONGEST = 240  # seconds; no wait in these tests is longer


def onnx_model(nodes, inputs, outputs, constants=()):
    """Bytes of an ONNX model of opset 17. Nodes are (op type, inputs, outputs), values (name, element type, dims); a dim is a number or a
    name. Constants are (name, element type, dims, raw bytes, or the name of a file beside the model that holds them)."""

    def varint(number):
        out = b""
        while number > 0x7F:
            out += bytes([number & 0x7F | 0x80])
            number >>= 7
        return out + bytes([number])

    def number(field, value):
        return varint(field << 3) + varint(value)

    def part(field, content):
        content = content.encode() if isinstance(content, str) else content
        return varint(field << 3 | 2) + varint(len(content)) + content

    def value(name, dtype, dims):
        shape = b"".join(part(1, part(2, dim) if isinstance(dim, str) else number(1, dim)) for dim in dims)
        return part(1, name) + part(2, part(1, number(1, dtype) + part(2, shape)))

    graph = b""
    for op_type, taken, made in nodes:
        graph += part(1, b"".join(part(1, name) for name in taken) + b"".join(part(2, name) for name in made) + part(4, op_type))
    graph += part(2, "graph")
    for name, dtype, dims, raw in constants:
        where = part(13, part(1, "location") + part(2, raw)) + number(14, 1) if isinstance(raw, str) else part(9, raw)
        graph += part(5, b"".join(number(1, dim) for dim in dims) + number(2, dtype) + part(8, name) + where)
    graph += b"".join(part(11, value(*each)) for each in inputs) + b"".join(part(12, value(*each)) for each in outputs)
    return number(1, 8) + part(7, graph) + part(8, number(2, 17))


class Farm(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="layerfarm-test-"))
        self.out = self.folder / "out"
        self.cache = self.folder / "cache"
        self.env = dict(os.environ, LAYERFARM_CACHE_DIR=str(self.cache))
        self.env.pop("LAYERFARM_CHIP", None)
        self.env.pop("LAYERFARM_CHIPS", None)

    def tearDown(self):
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["chmod", "-R", "u+w", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(left, [], "processes outlive the command")

    def processes(self, patience=5.0):
        """Processes that have this test's cache in their environment; waits a moment for them to go."""
        mark = f"LAYERFARM_CACHE_DIR={self.cache}".encode()
        deadline = time.monotonic() + patience
        while True:
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                try:
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    if mark in (entry / "environ").read_bytes().split(b"\0") and state != "Z":
                        found.append(int(entry.name))
                except OSError:
                    continue
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def command(self, *arguments):
        return [str(BIN / "layerfarm"), *map(str, arguments)]

    def run_farm(self, *arguments, code=None, **options):
        """Runs the program to its end. `code`: the exit code that is expected."""
        done = subprocess.run(self.command(*arguments), env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LONGEST, **options)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def discover(self, model, chip, *arguments, code=None, out=None, workers=2):
        path = model if os.sep in str(model) else MODELS / f"{model}.onnx"
        return self.run_farm("discover", "--model", path, "--chip", chip, "--workers", workers, "--output-dir", out or self.out, *arguments,
                             code=code)

    def start(self, *arguments):
        return subprocess.Popen(self.command(*arguments), env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def report(self, model, out=None):
        return json.loads(self.report_path(model, out).read_text())

    def report_path(self, model, out=None):
        return (out or self.out) / f"torq_gen_config_{model}.json"

    def files(self, out=None):
        """Content of every file below the output folder, by name."""
        root = out or self.out
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    def chip(self, name, command, **more):
        """A chip of the toolchain `process`: what it runs is what the test says."""
        folder = self.folder / "chips"
        folder.mkdir(exist_ok=True)
        chip = {"toolchain": "process", "executors": [{"name": "e0", "evidence": "stand-in"}], "options": {"command": command}, **more}
        (folder / f"{name}.json").write_text(json.dumps(chip))
        self.env["LAYERFARM_CHIPS"] = str(folder)
        return name

    def wait_until(self, condition, what, patience=60.0):
        deadline = time.monotonic() + patience
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"waited in vain for {what}")
            time.sleep(0.01)

    def workers_of(self, pid):
        """Worker processes that a coordinator started."""
        return self.children_of(pid, "layerfarm-work")

    def launchers_of(self, pid):
        """The processes of its workers that start the tools."""
        return [child for worker in self.workers_of(pid) for child in self.children_of(worker, "layerfarm-launc")]

    @staticmethod
    def children_of(pid, name):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                stat = (entry / "stat").read_text()
                its_name = stat.split("(", 1)[1].rsplit(")", 1)[0]
                if int(stat.rsplit(")", 1)[1].split()[1]) == pid and its_name.startswith(name):
                    found.append(int(entry.name))
            except (OSError, IndexError, ValueError):
                continue
        return found
